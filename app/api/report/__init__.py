"""Reports as one self-contained page: HTML with its styles and pictures inside, which loads nothing."""
