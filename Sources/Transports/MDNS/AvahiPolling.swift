import CAvahi
import Glibc
import NighCore
import NighUV

/// Lets Avahi's libraries wait on a `UVEventLoop`, for their descriptors and their timeouts.
///
/// libdbus watches one descriptor twice, for reading and for writing, but the loop takes one watch per descriptor. So
/// the watches of one descriptor share it. Avahi's timeouts are times of the wall clock; they are converted to a delay
/// from now.
///
/// Loop only, like everything that Avahi gets here.
final class AvahiPolling {
    /// The poll functions for Avahi's libraries. They are valid as long as this object lives, which must be longer than
    /// anything made with it.
    let api = UnsafeMutablePointer<AvahiPoll>.allocate(capacity: 1)

    fileprivate let loop: UVEventLoop
    fileprivate var descriptors: [Int32: Descriptor] = [:]

    init(on loop: UVEventLoop) {
        self.loop = loop
        api.initialize(to: AvahiPoll())
        api.pointee.userdata = Unmanaged.passUnretained(self).toOpaque()
        api.pointee.watch_new = { api, descriptor, events, callback, userdata in
            guard let polling = AvahiPolling.of(api), let callback else { return nil }
            let watch = Watch(polling, descriptor, events.rawValue, callback, userdata)
            guard polling.add(watch) else { return nil }
            return OpaquePointer(Unmanaged.passRetained(watch).toOpaque())
        }
        api.pointee.watch_update = { watch, events in
            guard let watch = Watch.of(watch) else { return }
            watch.wanted = events.rawValue
            watch.polling.descriptors[watch.descriptor]?.apply()
        }
        api.pointee.watch_get_events = { watch in
            AvahiWatchEvent(rawValue: Watch.of(watch)?.currentEvents ?? 0)
        }
        api.pointee.watch_free = { watch in
            guard let pointer = watch, let watch = Watch.of(watch) else { return }
            watch.polling.remove(watch)
            Unmanaged<Watch>.fromOpaque(UnsafeRawPointer(pointer)).release()
        }
        api.pointee.timeout_new = { api, moment, callback, userdata in
            guard let polling = AvahiPolling.of(api), let callback else { return nil }
            let timeout = Timeout(polling.loop, callback, userdata)
            timeout.set(moment?.pointee)
            return OpaquePointer(Unmanaged.passRetained(timeout).toOpaque())
        }
        api.pointee.timeout_update = { timeout, moment in Timeout.of(timeout)?.set(moment?.pointee) }
        api.pointee.timeout_free = { timeout in
            guard let pointer = timeout else { return }
            Timeout.of(timeout)?.set(nil)
            Unmanaged<Timeout>.fromOpaque(UnsafeRawPointer(pointer)).release()
        }
    }

    deinit { api.deallocate() }

    private static func of(_ api: UnsafePointer<AvahiPoll>?) -> AvahiPolling? {
        guard let data = api?.pointee.userdata else { return nil }
        return Unmanaged<AvahiPolling>.fromOpaque(data).takeUnretainedValue()
    }

    private func add(_ watch: Watch) -> Bool {
        if descriptors[watch.descriptor] == nil {
            guard let shared = Descriptor(watch.descriptor, on: loop) else { return false }
            descriptors[watch.descriptor] = shared
        }
        descriptors[watch.descriptor]?.watches.append(watch)
        descriptors[watch.descriptor]?.apply()
        return true
    }

    private func remove(_ watch: Watch) {
        watch.isAlive = false
        guard let shared = descriptors[watch.descriptor] else { return }
        shared.watches.removeAll { $0 === watch }
        shared.apply()
        guard shared.watches.isEmpty else { return }
        shared.cancel()
        descriptors[watch.descriptor] = nil
    }

    /// The object behind an `AvahiWatch`.
    fileprivate final class Watch {
        let polling: AvahiPolling
        let descriptor: Int32
        var wanted: UInt32
        var currentEvents: UInt32 = 0
        var isAlive = true
        private let callback: AvahiWatchCallback
        private let userdata: UnsafeMutableRawPointer?

        init(
            _ polling: AvahiPolling, _ descriptor: Int32, _ wanted: UInt32, _ callback: AvahiWatchCallback,
            _ userdata: UnsafeMutableRawPointer?
        ) {
            self.polling = polling
            self.descriptor = descriptor
            self.wanted = wanted
            self.callback = callback
            self.userdata = userdata
        }

        static func of(_ pointer: OpaquePointer?) -> Watch? {
            pointer.map { Unmanaged<Watch>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
        }

        func report(_ events: UInt32) {
            // Errors are always reported, as poll(2) does.
            let reported = events & (wanted | AVAHI_WATCH_ERR.rawValue | AVAHI_WATCH_HUP.rawValue)
            guard isAlive, reported != 0 else { return }
            currentEvents = reported
            callback(
                OpaquePointer(Unmanaged.passUnretained(self).toOpaque()), descriptor,
                AvahiWatchEvent(rawValue: reported), userdata)
            currentEvents = 0
        }
    }

    /// A descriptor and all its watches.
    fileprivate final class Descriptor {
        var watches: [Watch] = []
        private var watch: DescriptorWatch?

        init?(_ descriptor: Int32, on loop: UVEventLoop) {
            watch = try? loop.watch(descriptor, for: []) { [unowned self] in handle($0) }
            guard watch != nil else { return nil }
        }

        func cancel() {
            watch?.cancel()
            watch = nil
        }

        func apply() {
            let wanted = watches.reduce(0) { $0 | $1.wanted }
            var events: DescriptorEvents = []
            if wanted & AVAHI_WATCH_IN.rawValue != 0 { events.insert(.readable) }
            if wanted & AVAHI_WATCH_OUT.rawValue != 0 { events.insert(.writable) }
            if !watches.isEmpty && events.isEmpty { events = .disconnected }
            watch?.events = events
        }

        private func handle(_ events: DescriptorEvents) {
            var reported: UInt32 = 0
            if events.isEmpty { reported |= AVAHI_WATCH_ERR.rawValue }
            if events.contains(.readable) { reported |= AVAHI_WATCH_IN.rawValue }
            if events.contains(.writable) { reported |= AVAHI_WATCH_OUT.rawValue }
            if events.contains(.disconnected) { reported |= AVAHI_WATCH_HUP.rawValue }
            // A copy: a callback may end watches, including its own.
            for watch in watches { watch.report(reported) }
            // The callbacks must take the error from the descriptor, or release the descriptor.
            if events.isEmpty { watch?.resume() }
        }
    }

    /// The object behind an `AvahiTimeout`. Loop only.
    fileprivate final class Timeout {
        private let loop: UVEventLoop
        private let callback: AvahiTimeoutCallback
        private let userdata: UnsafeMutableRawPointer?
        private var timer: LoopTimer?

        init(_ loop: UVEventLoop, _ callback: AvahiTimeoutCallback, _ userdata: UnsafeMutableRawPointer?) {
            self.loop = loop
            self.callback = callback
            self.userdata = userdata
        }

        static func of(_ pointer: OpaquePointer?) -> Timeout? {
            pointer.map { Unmanaged<Timeout>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
        }

        /// Sets when it fires; nil switches it off.
        func set(_ moment: timeval?) {
            if let timer { loop.cancel(timer) }
            timer = nil
            guard let moment else { return }
            var now = timeval()
            gettimeofday(&now, nil)
            let microseconds =
                (Int64(moment.tv_sec) - Int64(now.tv_sec)) * 1_000_000 + Int64(moment.tv_usec)
                - Int64(now.tv_usec)
            let wait = Moment.Span(nanoseconds: max(0, microseconds) * 1_000)
            timer = loop.schedule(at: loop.now + wait) { self.fired() }
        }

        private func fired() {
            timer = nil
            callback(OpaquePointer(Unmanaged.passUnretained(self).toOpaque()), userdata)
        }
    }
}
