import CAvahi
import Glibc
import NighCore
import NighSystem
import NighUV

/// Runs libavahi-client on a thread of its own, where it may wait for the daemon without limit.
///
/// A client cannot be used any more once its daemon or D-Bus is gone. It is then freed, and a new client is made, which
/// waits for the daemon.
///
/// `@unchecked Sendable`: apart from `perform`, `startOver` and `end`, everything happens on the loop that this object
/// makes.
final class AvahiDaemonThread: @unchecked Sendable {
    enum Event: Sendable {
        case answered(UInt64)
        case up(host: DomainName, version: String)
        case down(NighError)
        case changed(UInt64, RecordChange)
        case watchFailed(UInt64, NighError)
        case published(UInt64)
        case collided(UInt64)
        case publishingFailed(UInt64, NighError)
    }

    static let firstRetry = Moment.Span.milliseconds(250)
    static let longestRetry = Moment.Span.seconds(5)
    /// The descriptors that connecting may open: for the libraries, one after the other, and for the bus.
    private static let descriptorsNeeded = 4

    private let loop: UVEventLoop
    private let interfaceName: String?
    private let report: @Sendable (Event) -> Void
    private let polling: AvahiPolling
    private let substitute: CAvahiClientFunctions?
    /// Nil until it is loaded.
    private var library: CAvahiClientFunctions?
    private var client: OpaquePointer?
    private var clientNumber: UInt64 = 0
    /// A client calls back while it is being made, before `client` is set.
    private var state: AvahiClientState?
    private var isConnecting = false
    private var interface: Int32 = -1
    private var watches: [UInt64: Watch] = [:]
    private var group: OpaquePointer?
    private var groupNumber: UInt64 = 0
    private var timer: LoopTimer?
    private var pause = AvahiDaemonThread.firstRetry
    private var isEnded = false

    /// One record browser. The library refers to it by its address.
    private final class Watch {
        let number: UInt64
        unowned let thread: AvahiDaemonThread
        var browser: OpaquePointer?

        init(_ number: UInt64, _ thread: AvahiDaemonThread) {
            self.number = number
            self.thread = thread
        }
    }

    /// Throws if the system has no descriptor or no thread left.
    ///
    /// - Parameter library: a substitute for libavahi-client, for tests.
    init(
        interface: String?, library: CAvahiClientFunctions? = nil, report: @escaping @Sendable (Event) -> Void
    ) throws(NighError) {
        loop = try UVEventLoop.make()
        interfaceName = interface
        substitute = library
        self.report = report
        polling = AvahiPolling(on: loop)
    }

    // MARK: Calls from the other thread

    func perform(_ call: @escaping @Sendable (AvahiDaemonThread) -> Void, number: UInt64) {
        loop.execute {
            guard !self.isEnded else { return }
            call(self)
            self.report(.answered(number))
        }
    }

    /// Releases everything as soon as the daemon allows it, and connects again.
    func startOver() {
        loop.execute {
            guard !self.isEnded else { return }
            self.disconnect()
            self.connect()
        }
    }

    /// Releases everything as soon as the daemon allows it, and ends the thread.
    func end() {
        loop.execute {
            self.isEnded = true
            self.disconnect()
            self.loop.shutdown()
        }
    }

    // MARK: The connection

    func connect() {
        if let shortage = SystemShortage.ofDescriptors(Self.descriptorsNeeded) {
            report(.down(shortage))
            return retryLater()
        }
        // Only after the check for descriptors, because a library that could not be loaded once is not tried again.
        library = substitute ?? CAvahiClient()?.pointee
        guard let library else {
            return report(
                .down(
                    AvahiProblem.missing(
                        "libavahi-client3", CAvahiClientProblem().map { String(cString: $0) } ?? "")))
        }
        guard findInterface() else { return }
        var code: Int32 = 0
        state = nil
        clientNumber += 1
        isConnecting = true
        client = library.client_new(
            polling.api, AVAHI_CLIENT_NO_FAIL,
            { client, state, data in
                guard let data else { return }
                Unmanaged<AvahiDaemonThread>.fromOpaque(data).takeUnretainedValue().changed(client, state)
            }, Unmanaged.passUnretained(self).toOpaque(), &code)
        isConnecting = false
        guard client != nil else { return fail(code) }
        if let state { act(on: state) }
    }

    private func findInterface() -> Bool {
        guard let interfaceName else { return true }
        interface = Int32(clamping: if_nametoindex(interfaceName))
        guard interface == 0 else { return true }
        report(.down(AvahiProblem.noInterface(interfaceName)))
        retryLater()
        return false
    }

    func checkInterface() {
        guard let interfaceName, Int32(clamping: if_nametoindex(interfaceName)) != interface else { return }
        disconnect()
        connect()
    }

    private func changed(_ changed: OpaquePointer?, _ state: AvahiClientState) {
        self.state = state
        guard !isConnecting, changed == client else { return }
        // The library is in the middle of a call, and the client may have to be freed.
        loop.execute { [number = clientNumber] in
            guard number == self.clientNumber, self.state == state else { return }
            self.act(on: state)
        }
    }

    private func act(on state: AvahiClientState) {
        guard let library, let client else { return }
        switch state {
        case AVAHI_CLIENT_S_RUNNING:
            guard let text = library.client_get_host_name_fqdn(client),
                let host = DomainName(escaped: String(cString: text))
            else { return fail(library.client_errno(client)) }
            let version = library.client_get_version_string(client).map { String(cString: $0) } ?? ""
            pause = Self.firstRetry
            report(.up(host: host, version: version))
        case AVAHI_CLIENT_CONNECTING:
            report(.down(error(AvahiProblem.disconnected, .starting)))
        case AVAHI_CLIENT_FAILURE:
            fail(library.client_errno(client))
        default:
            // The daemon is still choosing its host name; it runs after that.
            break
        }
    }

    private func fail(_ code: Int32) {
        disconnect()
        report(.down(error(code, .starting)))
        retryLater()
    }

    /// A call has failed. If the daemon is gone, that concerns everything and not only this call: a moment before the
    /// client finds out, it must not be taken for a fault of the request.
    private func callFailed(_ code: Int32, _ failure: (Int32) -> Event) {
        if AvahiProblem.isLossOfDaemon(code) {
            fail(AvahiProblem.disconnected)
        } else {
            report(failure(code))
        }
    }

    /// Handles a failed call while the library is in the middle of another one.
    private func callFailedInside(_ failure: @escaping @Sendable (AvahiDaemonThread, Int32) -> Event) {
        guard let library, let client else { return }
        let code = library.client_errno(client)
        loop.execute { [number = clientNumber] in
            guard number == self.clientNumber, self.client != nil else { return }
            self.callFailed(code) { failure(self, $0) }
        }
    }

    private func retryLater() {
        timer = loop.schedule(at: loop.now + pause) {
            self.timer = nil
            self.connect()
        }
        pause = min(pause + pause, Self.longestRetry)
    }

    private func disconnect() {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let library, let client else { return }
        self.client = nil
        state = nil
        group = nil
        // This also frees everything made with the client, and the daemon withdraws the publication.
        library.client_free(client)
        watches = [:]
    }

    private func error(_ code: Int32, _ stage: NighError.Stage) -> NighError {
        let message = library.flatMap { $0.strerror(code) }.map { String(cString: $0) } ?? ""
        return AvahiProblem.error(code, stage, message: message)
    }

    // MARK: Browsing

    func watch(_ question: Question, as number: UInt64) {
        guard let library, let client else { return }
        let watch = Watch(number, self)
        watches[number] = watch
        watch.browser = library.record_browser_new(
            client, interface, -1, question.name.escaped, UInt16(AVAHI_DNS_CLASS_IN), question.type.rawValue,
            AVAHI_LOOKUP_USE_MULTICAST,
            { _, interface, version, event, _, _, _, data, size, _, context in
                guard let context else { return }
                let origin = RecordChange.Origin(interface: interface, version: version)
                let watch = Unmanaged<Watch>.fromOpaque(context).takeUnretainedValue()
                watch.thread.browserChanged(
                    watch.number, origin, event, UnsafeRawBufferPointer(start: data, count: size))
            }, Unmanaged.passUnretained(watch).toOpaque())
        guard watch.browser == nil else { return }
        watches[number] = nil
        callFailed(library.client_errno(client)) { .watchFailed(number, error($0, .browsing)) }
    }

    func unwatch(_ number: UInt64) {
        guard let library, let watch = watches.removeValue(forKey: number), let browser = watch.browser else {
            return
        }
        _ = withExtendedLifetime(watch) { library.record_browser_free(browser) }
    }

    private func browserChanged(
        _ number: UInt64, _ origin: RecordChange.Origin, _ event: AvahiBrowserEvent,
        _ data: UnsafeRawBufferPointer
    ) {
        switch event {
        case AVAHI_BROWSER_NEW, AVAHI_BROWSER_REMOVE:
            let change = RecordChange(
                isPresent: event == AVAHI_BROWSER_NEW, origin: origin, data: Array(data))
            report(.changed(number, change))
        case AVAHI_BROWSER_FAILURE:
            callFailedInside { .watchFailed(number, $0.error($1, .browsing)) }
            // The daemon counts it among this client's objects until it is freed. Avahi is still using it during this
            // call.
            loop.execute { self.unwatch(number) }
        default:
            break
        }
    }

    // MARK: Publishing

    func publish(_ publication: Publication, as number: UInt64) {
        unpublish()
        guard let library, let client else { return }
        groupNumber = number
        group = library.entry_group_new(
            client,
            { group, state, data in
                guard let data else { return }
                Unmanaged<AvahiDaemonThread>.fromOpaque(data).takeUnretainedValue().groupChanged(group, state)
            }, Unmanaged.passUnretained(self).toOpaque())
        guard let group else {
            return callFailed(library.client_errno(client)) {
                .publishingFailed(number, error($0, .advertising))
            }
        }
        var code: Int32 = 0
        for record in publication.records where code == 0 { code = add(record) }
        if code == 0 { code = library.entry_group_commit(group) }
        if code == 0 { code = add(publication.defendedService) }
        guard code != 0 else { return }
        unpublish()
        callFailed(code) {
            $0 == AvahiProblem.collision
                ? .collided(number) : .publishingFailed(number, error($0, .advertising))
        }
    }

    func updateText(of publication: Publication) {
        guard group != nil else { return }
        let code = add(publication.updatedText)
        if code != 0 { callFailed(code) { .publishingFailed(groupNumber, error($0, .advertising)) } }
    }

    func unpublish() {
        if let library, let group { _ = library.entry_group_free(group) }
        group = nil
    }

    private func add(_ record: Publication.ResourceRecord) -> Int32 {
        guard let library, let group else { return 0 }
        return record.data.withUnsafeBytes {
            library.entry_group_add_record(
                group, interface, -1, record.flags.avahi, record.name.escaped, UInt16(AVAHI_DNS_CLASS_IN),
                record.type.rawValue, Publication.timeToLive, $0.baseAddress, $0.count)
        }
    }

    private func groupChanged(_ changed: OpaquePointer?, _ state: AvahiEntryGroupState) {
        guard changed == group else { return }
        switch state {
        case AVAHI_ENTRY_GROUP_ESTABLISHED:
            report(.published(groupNumber))
        case AVAHI_ENTRY_GROUP_COLLISION:
            // The library is still using the group.
            loop.execute { [number = groupNumber] in
                guard number == self.groupNumber, self.group != nil else { return }
                self.unpublish()
                self.report(.collided(number))
            }
        case AVAHI_ENTRY_GROUP_FAILURE:
            callFailedInside { [number = groupNumber] in .publishingFailed(number, $0.error($1, .advertising))
            }
        default:
            break
        }
    }
}
