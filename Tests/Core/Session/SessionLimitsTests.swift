import NighTestKit
import Testing

@testable import NighCore

/// A session starts with every limit that the protocol allows, and with no other.
@Suite struct SessionLimitsTests {
    private static let least: [@Sendable (inout SessionLimits) -> Void] = [
        { $0.frame = 8_192 }, { $0.message = 1 }, { $0.receiveWindow = 1 }, { $0.sendBuffer = 1 },
    ]
    private static let most: [@Sendable (inout SessionLimits) -> Void] = [
        { $0.frame = (1 << 24) - 1 }, { $0.message = Int(UInt32.max) }, { $0.invitationContext = 4_096 },
        { $0.unreliableMessage = 8_192 }, { $0.pingPayload = 1_024 }, { $0.pendingPings = 192 },
    ]
    private static let tooMuch: [@Sendable (inout SessionLimits) -> Void] = [
        { $0.frame = 8_191 }, { $0.frame = 1 << 24 }, { $0.message = 0 },
        { $0.message = Int(UInt32.max) + 1 },
        { $0.invitationContext = 4_097 }, { $0.unreliableMessage = 8_193 }, { $0.pingPayload = 1_025 },
        { $0.pendingPings = 193 }, { $0.receiveWindow = 0 }, { $0.sendBuffer = 0 },
    ]

    @Test func `Limits are valid within their bounds, and invalid beyond them`() {
        for (changes, areValid) in [(Self.least + Self.most, true), (Self.tooMuch, false)] {
            for change in changes {
                var limits = SessionLimits()
                change(&limits)
                #expect((limits.invalidLimit == nil) == areValid)
            }
        }
    }

    // MARK: The page

    private static var page: String { RepositoryFile.text(of: "docs/reference/LIMITS.md") }

    /// Returns the default of each field as docs/reference/LIMITS.md gives it, in seconds or as it is.
    private static func documented() -> [String: Double] {
        var defaults: [String: Double] = [:]
        for row in page.split(separator: "\n") where row.hasPrefix("| `") {
            let cells = row.split(separator: "|")
            // A row may be about two fields, and then gives two defaults.
            let names = cells[0].split(separator: "`").filter { $0.contains(".") }
            for (name, text) in zip(names, cells[1].split(separator: ", ")) {
                defaults[String(name)] = number(text)
            }
        }
        return defaults
    }

    private static func number(_ text: Substring) -> Double? {
        let words = text.split(separator: " ")
        guard let first = words.first, let count = Double(first.filter { $0 != "," }) else { return nil }
        switch words.dropFirst().first {
        case "MiB": return count * 1_048_576
        case "KiB": return count * 1_024
        case "ms": return count / 1_000
        default: return count
        }
    }

    @Test func `The memory kept for large messages matches the documentation`() {
        let seconds = LargeChunks.idleLifetime.nanoseconds / 1_000_000_000
        let words =
            "\(LargeChunks.countLimit) chunks, \(LargeChunks.byteLimit >> 20) MiB in all (`LargeChunks`), "
            + "for \(seconds) to \(2 * seconds) s without use"
        #expect(Self.page.contains(words))
    }

    @Test func `The defaults match the documentation`() {
        let documented = Self.documented()
        for (name, value) in Mirror(reflecting: SessionLimits()).children {
            #expect(documented["limits.\(name ?? "")"] == (value as? Int).map(Double.init), "\(name ?? "")")
        }
        for (name, value) in Mirror(reflecting: SessionTimings()).children {
            let seconds = (value as? Duration).map { $0 / .seconds(1) }
            #expect(documented["timings.\(name ?? "")"] == seconds, "\(name ?? "")")
        }
    }
}
