"""Pages for people under `/ui`: what the API answers, written by templates. They read, and save nothing."""
