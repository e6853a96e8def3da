import NighCore

/// The name of a group. It follows the rule of display names: 1 to 63 bytes of UTF-8 without control characters.
package struct GroupName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The name as text.
    package let description: String

    /// Creates the name `text`. Returns nil if `text` is empty, too long, or contains a control character.
    package init?(_ text: String) {
        guard let name = DisplayName(exactly: text) else { return nil }
        description = name.description
    }

    package static func < (left: GroupName, right: GroupName) -> Bool { left.description < right.description }
}
