import NighCore

/// The name of a group: 1 to 63 bytes of UTF-8 without control characters. Unlike a display name it may be blank,
/// because programs compare it and people need not see it.
package struct GroupName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The name as text.
    package let description: String

    /// Creates the name `text`. Returns nil if `text` is empty, too long, or contains a control character.
    package init?(_ text: String) {
        guard DisplayName.isWellFormed(text) else { return nil }
        description = text
    }

    package static func < (left: GroupName, right: GroupName) -> Bool { left.description < right.description }
}
