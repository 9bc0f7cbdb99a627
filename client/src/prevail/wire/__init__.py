"""The conversation with the service as generators that do no input or output; both clients share it."""
