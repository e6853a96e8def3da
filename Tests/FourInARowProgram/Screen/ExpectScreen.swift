import Testing

/// Whether a screen looks as it should; if not, both are told as they are.
func expect(
    screen actual: String, _ expected: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    guard actual != expected else { return }
    Issue.record("the screen is\n\(actual)\nand should be\n\(expected)", sourceLocation: sourceLocation)
}
