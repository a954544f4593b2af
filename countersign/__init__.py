"""Countersign: people sign exactly the action an agent may take, and it then happens once."""
