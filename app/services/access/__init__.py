"""Who may do what: keys are made, shown, rotated and revoked; every request is held against one."""
