import Testing

/// Expects that a screen looks like `expected`; if it does not, records both.
func expect(
    screen actual: String, _ expected: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    guard actual != expected else { return }
    Issue.record("the screen is\n\(actual)\nand should be\n\(expected)", sourceLocation: sourceLocation)
}
