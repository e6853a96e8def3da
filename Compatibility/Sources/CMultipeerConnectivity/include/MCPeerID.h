// Empty: the declarations are in the Swift module.
