"""What can be evaluated, brought to one form."""
