/// What a program offers and looks for, like `fourinarow`: 1 to 15 of a–z, 0–9 and `-` (RFC 6335).
public struct ServiceName: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The name itself.
    public let description: String

    /// Nil unless `text` is 1 to 15 of a–z, 0–9 and `-`, with a letter in it, no hyphen at an end, and no two in a row.
    public init?(_ text: String) {
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let hyphen = UInt8(ascii: "-")
        let characters = Array(text.utf8)
        guard (1...15).contains(characters.count),
            characters.allSatisfy({ letters.contains($0) || digits.contains($0) || $0 == hyphen }),
            characters.contains(where: letters.contains),
            characters.first != hyphen, characters.last != hyphen, !text.contains("--")
        else { return nil }
        description = text
    }
}

extension ServiceName: ExpressibleByStringLiteral {
    /// For names written in the program's source; a name that breaks the rule stops the program there.
    public init(stringLiteral value: String) {
        guard let name = ServiceName(value) else {
            preconditionFailure("\"\(value)\" is no service name: 1 to 15 of a-z, 0-9 and '-', with a letter")
        }
        self = name
    }
}

/// The label a person knows a peer by: 1 to 63 bytes of UTF-8 without control characters. It identifies nobody.
public struct DisplayName: Hashable, Sendable, CustomStringConvertible {
    /// The most bytes a name may have.
    public static let maximumByteCount = 63

    /// The name itself.
    public let description: String

    /// Nil when `text` is empty, longer than 63 bytes, or holds a control character.
    public init?(exactly text: String) {
        guard (1...Self.maximumByteCount).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { return nil }
        description = text
    }

    /// The nearest name to `text`: control characters dropped, cut between characters at 63 bytes; "unnamed" if
    /// nothing is left.
    public init(fitting text: String) {
        var kept = ""
        for character in text
        where character.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) {
            guard kept.utf8.count + character.utf8.count <= Self.maximumByteCount else { break }
            kept.append(character)
        }
        description = kept.isEmpty ? "unnamed" : kept
    }
}

/// What a session tells the neighbourhood before anybody connects: a few short pairs, such as `table=open`.
///
/// Bounded to 400 bytes in the form it travels in (`key=value` with a length byte each), because it must fit into a
/// DNS text record and a Bluetooth service record.
public struct DiscoveryInfo: Hashable, Sendable {
    /// The most bytes all pairs may take together.
    public static let maximumByteCount = 400

    /// The pairs.
    public let pairs: [String: String]

    /// No pairs.
    public static let none = DiscoveryInfo(unchecked: [:])

    private init(unchecked pairs: [String: String]) { self.pairs = pairs }

    /// Checks `pairs`: keys of 1 to 9 printable ASCII characters without `=`, not `v` or `id` (those are Nigh's own), no
    /// two that differ in case only (DNS text records ignore it), no pair over 255 bytes, 400 bytes in all.
    public init(_ pairs: [String: String]) throws(NighError) {
        var folded: Set<String> = []
        for (key, value) in pairs {
            guard (1...9).contains(key.utf8.count),
                key.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") })
            else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\""),
                    advice: "keys are 1 to 9 printable ASCII characters without '='")
            }
            guard !["v", "id"].contains(key.lowercased()) else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\""),
                    advice: "'v' and 'id' are taken; choose another key")
            }
            guard folded.insert(key.lowercased()).inserted else {
                throw NighError(
                    .configuring, .invalid("discovery info key \"\(key)\", given twice"),
                    advice: "upper and lower case are the same in a key")
            }
            guard key.utf8.count + value.utf8.count + 1 <= 255 else {
                throw NighError(
                    .configuring, .limit("discovery info pair", 255),
                    advice: "shorten the value of \"\(key)\"")
            }
        }
        let checked = DiscoveryInfo(unchecked: pairs)
        guard checked.byteCount <= Self.maximumByteCount else {
            throw NighError(
                .configuring, .limit("discovery info", Self.maximumByteCount),
                advice: "send what is large as a message once connected")
        }
        self = checked
    }

    /// How many bytes the pairs take on the way.
    public var byteCount: Int { pairs.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 } }

    /// The value of `key`.
    public subscript(key: String) -> String? { pairs[key] }
}
