// Empty: what is declared is in the Swift module.
