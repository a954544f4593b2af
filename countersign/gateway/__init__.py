"""The only code that acts outside: it verifies the grant itself and holds the credentials of the channels."""
