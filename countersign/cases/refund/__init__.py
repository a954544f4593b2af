"""The refund case: from a customer's complaint and an order's payments to one refund, and what the customer is told."""
