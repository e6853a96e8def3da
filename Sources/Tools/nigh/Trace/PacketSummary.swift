import JSONText
import NighCore
import NighRecord

/// The content of one recorded packet of a datagram path, in words and as JSON.
struct PacketSummary {
    /// The name of the packet's kind, with `packet-` in front.
    let name: String
    private(set) var text: String
    private(set) var details: [JSON.Member] = []
    /// How the packet breaks the rules of its kind, so that its receiver ignores it; nil if it does not.
    private(set) var fault: String?
    /// Whether the packet is a message, or the last part that was missing of one.
    private(set) var completesMessage = false

    static let namePrefix = "packet-"

    /// Reads `packet`, and updates `state`, the state of its link.
    init(of packet: RecordedPacket, in state: inout LinkState) {
        text = "\(packet.number)"
        guard let kind = packet.content.withUnsafeBytes(\.first) else {
            name = "\(Self.namePrefix)empty"
            breaks("no content")
            return
        }
        name = Self.namePrefix + DatagramContent.name(ofKind: kind)
        let needed = [3: DatagramContent.messageOverhead, 4: DatagramContent.fragmentOverhead + 1][kind]
        guard packet.isWhole || packet.content.count >= needed ?? .max else {
            text += ": only the first \(packet.content.count) bytes of its content were recorded"
            return
        }
        do throws(WireError) {
            let content = packet.content
            try content.withUnsafeBytes { bytes throws(WireError) in
                guard let content = try DatagramContent(reading: bytes) else {
                    text += ": of a later version, and ignored"
                    return
                }
                read(content, packet, &state)
            }
        } catch {
            breaks(error.message)
        }
    }

    private mutating func breaks(_ rule: String) {
        fault = rule
        text += ": breaks the protocol: \(rule)"
    }

    private mutating func read(
        _ content: DatagramContent, _ packet: RecordedPacket, _ state: inout LinkState
    ) {
        switch content {
        case .probe(let token), .answer(let token):
            text += ": token \(Self.hex(token))"
            details = [.init("token", .text(Self.hex(token)))]
        case .message(let order, _):
            completesMessage = true
            let count = packet.length - DatagramContent.messageOverhead
            text += ": \(count) bytes, \(Self.words(for: order))"
            details = [.init("message_bytes", .integer(count))] + Self.details(of: order)
        case .fragment(let order, let fragment, _):
            completesMessage = state.completes(fragment, packet.direction)
            let count = packet.length - DatagramContent.fragmentOverhead
            text += ": part \(Int(fragment.index) + 1) of \(fragment.count) of message \(fragment.message), "
            text += "\(count) bytes, \(Self.words(for: order))"
            details =
                [
                    .init("long_message", .integer(Int(fragment.message))),
                    .init("part_index", .integer(Int(fragment.index))),
                    .init("part_count", .integer(Int(fragment.count))),
                    .init("part_bytes", .integer(count)),
                ] + Self.details(of: order)
        case .report(let report):
            let delay = Moment.Span(nanoseconds: Int64(report.delay) * 1_000).milliseconds
            text += ": \(report.received) packets have come, \(report.highest) is the highest, "
            text += "\(delay) ms ago"
            details = [
                .init("highest", .integer(Int(clamping: report.highest))),
                .init("delay_us", .integer(Int(report.delay))),
                .init("received", .integer(Int(clamping: report.received))),
            ]
        }
    }

    private static func words(for order: DatagramOrder) -> String {
        if let key = order.key { return "newest of key \(key)" }
        return order == .unordered ? "unordered" : "in order"
    }

    private static func details(of order: DatagramOrder) -> [JSON.Member] {
        [.init("order", .integer(Int(order.rawValue)))]
            + (order.key.map { [.init("key", .integer(Int($0)))] } ?? [])
    }

    static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
