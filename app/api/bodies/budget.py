"""How many bytes all bodies together may hold in this process, in memory and in files for as long as they are used."""

# Bodies up to here are not counted: there are at most as many as connections.
UNCOUNTED_BYTES = 256 * 1024


class ByteBudget:
    """What is left for bodies under way."""

    def __init__(self, total: int) -> None:
        self.free = total


class Lease:
    """What one request holds of the budget."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._received = self._held = 0

    def grow(self, size: int) -> bool:
        """Take more bytes; False when there are not enough left."""
        self._received += size
        wanted = self._received - UNCOUNTED_BYTES - self._held
        if wanted > self._budget.free:
            return False
        if wanted > 0:
            self._held += wanted
            self._budget.free -= wanted
        return True

    def end(self) -> None:
        """Give everything back."""
        self._budget.free += self._held
        self._held = 0
