"""What is raised where samples are asked for that went by."""


class NotFolded(AttributeError):
    """Something that needs all samples at once was asked of samples that went by."""
