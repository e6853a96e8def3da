import NighChannels
import NighCore
import NighTestKit

/// The channels of one run, and what its user sends through them.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class WorldChannels: @unchecked Sendable {
    /// A peer, and the name of a channel.
    struct Destination: Hashable {
        let other: Int
        let name: String
    }

    let layer = Channels()
    /// The channels that the user has open, by name.
    private(set) var open: [String: ChannelPort] = [:]
    /// How many channels of each name the user has closed.
    private(set) var closings: [String: Int] = [:]
    /// The flow that the user sends at present.
    var flows: [Destination: ChannelFlow] = [:]

    func isOpen(_ name: String) -> Bool { open[name] != nil }

    /// Opens a channel. That fails while the session is closing.
    func open(_ name: String) {
        if open[name] == nil { open[name] = try? layer.open(name) }
    }

    func close(_ name: String) {
        guard let port = open.removeValue(forKey: name) else { return }
        closings[name, default: 0] += 1
        layer.close(port)
        flows = flows.filter { $0.key.name != name }
    }
}

/// The messages that one run sends to a peer through one stream of a channel.
///
/// A channel that either user closes and opens again, or a new conversation, begins another flow.
///
/// `@unchecked Sendable`: confined to the thread that runs the world.
final class ChannelFlow: @unchecked Sendable {
    /// The bytes at the beginning of a message that say which one it is, unless it is shorter.
    static let headerLength = 8

    let number: Int
    let name: String
    let sender: SessionRun
    let other: Int
    let receiver: SessionRun?
    /// The number in the ledger of what the sender sends in the conversation.
    let conversation: Int
    /// Whether a message may be shorter than a header. It can only be told from those of other flows if there is no
    /// other flow of this name between the two.
    let mayBeShort: Bool
    private let closingsBefore: Int
    /// The lengths of the messages that the sender's session has accepted, or is just asked to accept.
    var lengths: [Int] = []
    /// The number of messages that the receiver has read, and the channel from which it read them.
    private(set) var arrived = 0
    private var reader: ChannelPort?
    /// The task that sends, while there is one.
    var task: Task<Void, Never>?
    /// Whether its user has cancelled that task.
    var isCancelled = false

    init(
        number: Int, name: String, from sender: SessionRun, to other: Int,
        _ stream: SessionRun.OutgoingStream,
        mayBeShort: Bool
    ) {
        self.number = number
        self.name = name
        self.sender = sender
        self.other = other
        self.mayBeShort = mayBeShort
        receiver = stream.receiver
        conversation = stream.number
        closingsBefore = stream.receiver?.channels?.closings[name] ?? 0
    }

    /// Whether the receiver may have closed the channel in which the messages arrive.
    var isReceiverClosed: Bool { receiver?.channels?.closings[name] ?? 0 > closingsBefore }

    /// Returns a message of the flow.
    func message(_ index: Int, length: Int) -> [UInt8] {
        var bytes = NumberedMessage.bytes(ofStream: 1 << 41 | number << 20 | index, from: 0, count: length)
        guard length >= Self.headerLength else { return bytes }
        bytes.withUnsafeMutableBytes {
            $0.storeBytes(of: UInt32(number), as: UInt32.self)
            $0.storeBytes(of: UInt32(index), toByteOffset: 4, as: UInt32.self)
        }
        return bytes
    }

    /// Returns the numbers of the flow and of the message that a message claims to be; nil if it is too short.
    static func header(of bytes: [UInt8]) -> (flow: Int, index: Int)? {
        guard bytes.count >= headerLength else { return nil }
        return bytes.withUnsafeBytes {
            (
                Int($0.loadUnaligned(as: UInt32.self)),
                Int($0.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
            )
        }
    }

    /// Records that a message was read from a channel. Returns what is wrong with it; nil if nothing is.
    func recordArrival(of bytes: [UInt8], in port: ChannelPort) -> Violation? {
        if let index = Self.header(of: bytes)?.index, index != arrived {
            return Violation(
                index < arrived ? .exactlyOnce : .order,
                "message \(index) of flow \(number) comes, \(arrived) is next")
        }
        guard arrived < lengths.count else {
            return Violation(.exactlyOnce, "a message of flow \(number) comes after all \(arrived)")
        }
        guard bytes == message(arrived, length: lengths[arrived]) else {
            return Violation(
                .order,
                "\(bytes.count) bytes come that are not message \(arrived) of flow \(number) with "
                    + "\(lengths[arrived]) bytes")
        }
        if let reader, reader !== port {
            return Violation(.order, "the messages of flow \(number) come in two channels")
        }
        reader = port
        arrived += 1
        return nil
    }
}
