"""`python -m prevail`: the same as the command `prevail`."""

from prevail.command import run

if __name__ == "__main__":
    run()
