import Glibc

/// The entry of one peer in a ``TrustStore``.
public struct TrustedPeer: Hashable, Sendable {
    /// The PeerID of the peer.
    public let id: PeerID
    /// The name it had when it was last seen.
    public let name: DisplayName
    /// Whether two people have compared the digits.
    public let isPaired: Bool
    /// The day on which it was paired, or first met if it never was.
    public let since: CalendarDay
    /// The day on which it was last met.
    public let lastSeen: CalendarDay
}

/// Knowledge about the identity of the peer at the other end of a link.
public enum PeerTrust: Hashable, Sendable {
    /// Two people have compared the digits, and this is the key they had.
    case paired
    /// This key was met before and is not paired, and its name is not that of a paired peer.
    case known
    /// Neither this key nor its name was met before.
    case new
    /// The key is new, but its name is that of these known peers, paired ones first. Or the key was met before and is
    /// not paired, but its name is that of these paired peers.
    ///
    /// It is a second device with the same name, a device that lost its identity, or
    /// an impostor.
    case newWithKnownName(of: [PeerID])
    /// The peer was announced as a session of this known identity, and has proven otherwise: somebody pretends.
    case falselyAnnounced(as: PeerID)
    /// The peer is a guest in a browser, and has its PeerID from this session. It has no key, cannot be paired, and its
    /// link is not encrypted.
    case guest

    /// Whether the peer may pretend to be a known peer.
    public var isDoubtful: Bool {
        switch self {
        case .newWithKnownName, .falselyAnnounced: true
        case .paired, .known, .new, .guest: false
        }
    }
}

/// A day of the Gregorian calendar in UTC, written as `2026-11-21`.
public struct CalendarDay: Hashable, Comparable, Sendable, CustomStringConvertible, LosslessStringConvertible
{
    /// Year, month and day as one number, for example 20261121.
    private let number: Int

    /// Parses the form that `description` writes. Returns nil for anything else, including days that do not exist.
    public init?(_ description: String) {
        let text = Array(description.utf8)
        guard text.count == 10, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-") else { return nil }
        var number = 0
        for (index, character) in text.enumerated() where index != 4 && index != 7 {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { return nil }
            number = number * 10 + Int(character - UInt8(ascii: "0"))
        }
        let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100)
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard year > 0, (1...12).contains(month), (1...lengths[month - 1]).contains(day) else { return nil }
        self.number = number
    }

    /// Returns the current day in UTC, by the calendar clock.
    package static func today() -> CalendarDay {
        var now = time(nil)
        var parts = tm()
        gmtime_r(&now, &parts)
        return CalendarDay(
            number: (Int(parts.tm_year) + 1900) * 10_000 + (Int(parts.tm_mon) + 1) * 100 + Int(parts.tm_mday))
    }

    private init(number: Int) { self.number = min(max(number, 1_01_01), 9999_12_31) }

    /// The ten characters of the date.
    public var description: String {
        var rest = number
        var text: [UInt8] = []
        for index in 0..<10 {
            if index == 2 || index == 5 {
                text.append(UInt8(ascii: "-"))
            } else {
                text.append(UInt8(ascii: "0") + UInt8(rest % 10))
                rest /= 10
            }
        }
        return String(decoding: text.reversed(), as: UTF8.self)
    }

    /// Returns whether `left` is earlier.
    public static func < (left: CalendarDay, right: CalendarDay) -> Bool { left.number < right.number }
}
