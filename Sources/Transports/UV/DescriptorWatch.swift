import CUV
import NighCore

/// What can happen to a descriptor.
public struct DescriptorEvents: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt8

    /// From bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// There is something to read, or the end.
    public static let readable = DescriptorEvents(rawValue: 1)
    /// There is room to write.
    public static let writable = DescriptorEvents(rawValue: 2)
    /// The other side has closed.
    public static let disconnected = DescriptorEvents(rawValue: 4)
    /// Both directions are over. libuv has no word for that, but tells it to who waits for urgent bytes, and those too.
    package static let hungUp = DescriptorEvents(rawValue: 8)

    fileprivate init(uv: Int32) {
        var events: DescriptorEvents = []
        if uv & Int32(UV_READABLE.rawValue) != 0 { events.insert(.readable) }
        if uv & Int32(UV_WRITABLE.rawValue) != 0 { events.insert(.writable) }
        if uv & Int32(UV_DISCONNECT.rawValue) != 0 { events.insert(.disconnected) }
        if uv & Int32(UV_PRIORITIZED.rawValue) != 0 { events.insert(.hungUp) }
        self = events
    }

    fileprivate var uv: Int32 {
        var events: UInt32 = 0
        if contains(.readable) { events |= UV_READABLE.rawValue }
        if contains(.writable) { events |= UV_WRITABLE.rawValue }
        if contains(.disconnected) { events |= UV_DISCONNECT.rawValue }
        if contains(.hungUp) { events |= UV_PRIORITIZED.rawValue }
        return Int32(events)
    }
}

/// Tells when a foreign descriptor (of a library, of a socket that libuv does not know) can be read or written.
///
/// Made by `UVEventLoop.watch`; one for each descriptor. It does not own the descriptor, which must stay open until
/// `cancel`. Loop only.
public final class DescriptorWatch {
    /// What is watched for; may be changed at any time, also from within the call. Nothing is told while it is empty.
    public var events: DescriptorEvents {
        didSet { if events != oldValue { apply() } }
    }

    private let poll: Poll

    /// The handle, apart from the watch: libuv keeps it alive until it is closed, the program keeps the watch.
    private final class Poll: UVHandle {
        var tell: ((DescriptorEvents) -> Void)?

        var pointer: UnsafeMutablePointer<uv_poll_t> { memory.assumingMemoryBound(to: uv_poll_t.self) }

        override func close() {
            // Whatever is let go of with it may come back here, or close the descriptor.
            let told = tell
            tell = nil
            super.close()
            withExtendedLifetime(told) {}
        }
    }

    init(
        _ descriptor: Int32, _ events: DescriptorEvents, on loop: UnsafeMutablePointer<uv_loop_t>,
        _ tell: @escaping (DescriptorEvents) -> Void
    ) throws(NighError) {
        self.events = events
        do throws(UVError) {
            poll = try Poll(UV_POLL) {
                uv_poll_init(loop, $0.assumingMemoryBound(to: uv_poll_t.self), descriptor)
            }
        } catch {
            throw NighError(.starting, error.cause, advice: "descriptor \(descriptor) cannot be watched")
        }
        poll.tell = tell
        apply()
    }

    deinit { poll.close() }

    private func apply() {
        guard !poll.isClosed else { return }
        guard !events.isEmpty else {
            uv_poll_stop(poll.pointer)
            return
        }
        uv_poll_start(poll.pointer, events.uv) { handle, status, events in
            guard let data = handle?.pointee.data else { return }
            let poll = UVHandle.object(of: data, as: Poll.self)
            poll.tell?(status < 0 ? [] : DescriptorEvents(uv: events))
        }
    }

    /// Looks at the descriptor again. After an error nothing more is told until this is called, by whoever has taken the
    /// error from the descriptor; where it is still there, it is told again.
    public func resume() { apply() }

    /// Ends it; nothing is told any more, and the descriptor may be closed.
    public func cancel() { poll.close() }
}
