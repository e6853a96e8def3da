/// The name of a group: 1 to 63 bytes of UTF-8 without control characters.
package struct GroupName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The name as text.
    package let description: String

    /// The most bytes of a name.
    package static let mostBytes = 63

    /// Creates the name `text`. Returns nil if `text` is empty, too long, or contains a control character.
    package init?(_ text: String) {
        guard (1...Self.mostBytes).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { return nil }
        description = text
    }

    package static func < (left: GroupName, right: GroupName) -> Bool { left.description < right.description }
}
