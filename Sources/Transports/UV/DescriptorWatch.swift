import CUV
import NighCore

/// Events of a descriptor.
public struct DescriptorEvents: OptionSet, Hashable, Sendable {
    /// The events as bits.
    public let rawValue: UInt8

    /// Creates a set of events from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// There is something to read, or the end of the stream.
    public static let readable = DescriptorEvents(rawValue: 1)
    /// There is room to write.
    public static let writable = DescriptorEvents(rawValue: 2)
    /// The other side has closed.
    public static let disconnected = DescriptorEvents(rawValue: 4)
    /// Both directions are over. libuv has no flag for that, but reports it to a caller that waits for urgent bytes,
    /// and reports those too.
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

/// Reports when a foreign descriptor (of a library, or of a socket that libuv does not know) can be read or written.
///
/// Made by `UVEventLoop.watch`; a descriptor has at most one. It does not own the descriptor, which must stay open
/// until `cancel`. Loop only.
public final class DescriptorWatch {
    /// The events to watch for. May be changed at any time, also from inside the callback. While it is empty, nothing
    /// is reported.
    public var events: DescriptorEvents {
        didSet { if events != oldValue { apply() } }
    }

    private let poll: Poll

    /// The handle, separate from the watch: libuv keeps it alive until it is closed, while the program keeps the watch.
    private final class Poll: UVHandle {
        // Called for each event, and copied for the call: no run-time check for exclusive access.
        @exclusivity(unchecked) var callback: ((DescriptorEvents) -> Void)?

        var pointer: UnsafeMutablePointer<uv_poll_t> { memory.assumingMemoryBound(to: uv_poll_t.self) }

        override func close() {
            // Releasing the closure may release objects that call this again or close the descriptor. So it comes last.
            let released = callback
            callback = nil
            super.close()
            withExtendedLifetime(released) {}
        }
    }

    init(
        _ descriptor: Int32, _ events: DescriptorEvents, on loop: UnsafeMutablePointer<uv_loop_t>,
        _ callback: @escaping (DescriptorEvents) -> Void
    ) throws(NighError) {
        self.events = events
        do throws(UVError) {
            poll = try Poll(UV_POLL) {
                uv_poll_init(loop, $0.assumingMemoryBound(to: uv_poll_t.self), descriptor)
            }
        } catch {
            throw NighError(.starting, error.cause, advice: "descriptor \(descriptor) cannot be watched")
        }
        poll.callback = callback
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
            UVHandle.with(data, as: Poll.self) { poll in
                poll.callback?(status < 0 ? [] : DescriptorEvents(uv: events))
            }
        }
    }

    /// Watches the descriptor again after an error. Nothing more is reported until this is called. The caller first
    /// takes the error from the descriptor; an error that is still there is reported again.
    public func resume() { apply() }

    /// Ends the watch. Nothing is reported any more, and the descriptor may be closed.
    public func cancel() { poll.close() }
}
