"""One class against the rest: rates, and what is made of them."""
