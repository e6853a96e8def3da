import CAvahi
import Glibc
import NighCore
import NighSystem
import NighUV

/// Runs Avahi's own mDNS stack inside this process, for machines without a running avahi-daemon.
///
/// It never blocks, and runs on the loop of its owner. Its host has a random name, because a second stack on one host
/// must not publish under the name of the first.
///
/// Loop only.
final class AvahiEmbedded: DiscoveryBackend {
    /// The pause before another attempt to make the stack.
    static let retry = Moment.Span.seconds(5)
    /// The descriptors that a stack may open: four UDP sockets, one for netlink, and some that are closed again.
    /// Without the one for netlink, Avahi 0.8 stops the program.
    private static let descriptorsNeeded = 8

    private let loop: UVEventLoop
    private let interface: String?
    private let polling: AvahiPolling
    private let host: DomainName
    /// Nil until it is loaded.
    private var core: CAvahiCoreFunctions?
    private weak var events: (any DiscoveryBackendEvents)?
    private var server: OpaquePointer?
    private var problem: NighError?
    private var timer: LoopTimer?
    private var addressTimer: LoopTimer?
    private var watches: [UInt64: Watch] = [:]
    private var group: OpaquePointer?
    private var groupNumber = 0
    private var addressGroups: [PublishedAddress: OpaquePointer] = [:]
    private var isPublished = false

    private struct PublishedAddress: Hashable {
        let interface: Int32
        let bytes: [UInt8]
    }

    /// One record browser. Avahi refers to it by its address.
    private final class Watch {
        let number: UInt64
        unowned let owner: AvahiEmbedded
        var browser: OpaquePointer?

        init(_ number: UInt64, _ owner: AvahiEmbedded) {
            self.number = number
            self.owner = owner
        }

        func changed(
            _ origin: RecordChange.Origin, _ event: AvahiBrowserEvent,
            _ record: UnsafeMutablePointer<AvahiRecord>?
        ) {
            switch event {
            case AVAHI_BROWSER_NEW, AVAHI_BROWSER_REMOVE:
                guard let record, let data = owner.serialize(record) else { return }
                owner.changed(number, origin, event == AVAHI_BROWSER_NEW, data)
            case AVAHI_BROWSER_FAILURE:
                owner.browserFailed(number)
            default:
                break
            }
        }
    }

    init(on loop: UVEventLoop, interface: String?) {
        self.loop = loop
        self.interface = interface
        polling = AvahiPolling(on: loop)
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        host = DomainName(
            literal: "nigh-" + String(repeating: "0", count: 8 - digits.count) + digits + ".local")
    }

    let kind = DiscoveryCondition.Provider.embedded
    let instanceLimit = 1_024

    func start(_ events: any DiscoveryBackendEvents) {
        self.events = events
        open()
    }

    private func open() {
        if let shortage = SystemShortage.ofDescriptors(Self.descriptorsNeeded) { return fail(shortage) }
        // Only after the check for descriptors, because a library that could not be loaded once is not tried again.
        core = CAvahiCore()?.pointee
        guard let core else {
            return fail(
                AvahiProblem.missing("libavahi-core7", CAvahiCoreProblem().map { String(cString: $0) } ?? ""))
        }
        if let interface, if_nametoindex(interface) == 0 { return fail(AvahiProblem.noInterface(interface)) }
        var configuration = AvahiServerConfig()
        _ = core.server_config_init(&configuration)
        defer { core.server_config_free(&configuration) }
        configuration.host_name = core.strdup(String(decoding: host.labels[0], as: UTF8.self))
        configuration.publish_hinfo = 0
        configuration.publish_addresses = 0
        configuration.publish_workstation = 0
        configuration.publish_domain = 0
        configuration.add_service_cookie = 0
        configuration.enable_wide_area = 0
        if let interface {
            configuration.allow_interfaces = core.string_list_add(nil, interface)
        }
        var code: Int32 = 0
        server = core.server_new(
            polling.api, &configuration,
            { _, state, data in
                guard state == AVAHI_SERVER_FAILURE, let data else { return }
                let embedded = Unmanaged<AvahiEmbedded>.fromOpaque(data).takeUnretainedValue()
                embedded.loop.later { embedded.serverFailed() }
            }, Unmanaged.passUnretained(self).toOpaque(), &code)
        guard server != nil else { return fail(error(code, .starting)) }
        problem = nil
        events?.backendUp(self, host: host)
    }

    /// Must not be called from inside Avahi's callback, because the server must not be freed there.
    private func serverFailed() {
        guard let core, let server else { return }
        let error = error(core.server_errno(server), .starting)
        close()
        fail(error)
    }

    private func fail(_ error: NighError) {
        let isNews = problem != error
        problem = error
        timer = loop.schedule(at: loop.now + Self.retry) {
            self.timer = nil
            self.open()
        }
        if isNews { events?.backendDown(self, error) }
    }

    /// Closes the stack. It sends goodbyes for everything published before it returns.
    private func close() {
        guard let core, let server else { return }
        self.server = nil
        let watches = watches
        self.watches = [:]
        group = nil
        addressGroups = [:]
        isPublished = false
        // Avahi refers to the watches by their addresses until the server is freed.
        withExtendedLifetime(watches) { core.server_free(server) }
    }

    func shutdown() {
        events = nil
        for timer in [timer, addressTimer] { if let timer { loop.cancel(timer) } }
        (timer, addressTimer) = (nil, nil)
        close()
    }

    func diagnose() -> Diagnosis {
        let subject = "mDNS in this process"
        if let problem {
            return Diagnosis(
                subject, .fail, problem.cause.description, advice: problem.advice, id: "embedded-mdns")
        }
        return Diagnosis(subject, .pass, "running as \(host)", id: "embedded-mdns")
    }

    private func error(_ code: Int32, _ stage: NighError.Stage) -> NighError {
        let message = core.flatMap { $0.strerror(code) }.map { String(cString: $0) } ?? ""
        return AvahiProblem.error(code, stage, message: message)
    }

    // MARK: Browsing

    func watch(_ question: Question, as number: UInt64) {
        guard let core, let server else { return }
        let watch = Watch(number, self)
        let key = core.key_new(question.name.escaped, UInt16(AVAHI_DNS_CLASS_IN), question.type.rawValue)
        defer { core.key_unref(key) }
        watches[number] = watch
        watch.browser = core.s_record_browser_new(
            server, -1, -1, key, AVAHI_LOOKUP_USE_MULTICAST,
            { _, interface, version, event, record, _, data in
                guard let data else { return }
                let origin = RecordChange.Origin(interface: interface, version: version)
                Unmanaged<Watch>.fromOpaque(data).takeUnretainedValue().changed(origin, event, record)
            }, Unmanaged.passUnretained(watch).toOpaque())
        guard watch.browser == nil else { return }
        watches[number] = nil
        events?.watchFailed(self, number, error(core.server_errno(server), .browsing))
    }

    func unwatch(_ number: UInt64) {
        guard let core, let watch = watches.removeValue(forKey: number), let browser = watch.browser else {
            return
        }
        withExtendedLifetime(watch) { core.s_record_browser_free(browser) }
    }

    private func changed(
        _ number: UInt64, _ origin: RecordChange.Origin, _ isPresent: Bool, _ data: [UInt8]
    ) {
        guard watches[number] != nil else { return }
        events?.watchChanged(self, number, RecordChange(isPresent: isPresent, origin: origin, data: data))
    }

    private func browserFailed(_ number: UInt64) {
        guard let core, let server, watches[number] != nil else { return }
        let error = error(core.server_errno(server), .browsing)
        unwatch(number)
        events?.watchFailed(self, number, error)
    }

    /// The record's data in wire format; nil if they do not fit into any packet.
    private func serialize(_ record: UnsafeMutablePointer<AvahiRecord>) -> [UInt8]? {
        guard let core else { return nil }
        let limit = 9_000
        var size = -1
        let data = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            size = core.rdata_serialize(record, buffer.baseAddress, limit)
            count = max(0, min(size, limit))
        }
        return size < 0 ? nil : data
    }

    // MARK: Publishing

    func publish(_ publication: Publication) {
        guard let core, let server else { return }
        isPublished = true
        withdraw()
        publishAddresses()
        groupNumber += 1
        group = core.s_entry_group_new(
            server,
            { _, group, state, data in
                guard let data else { return }
                Unmanaged<AvahiEmbedded>.fromOpaque(data).takeUnretainedValue().groupChanged(group, state)
            }, Unmanaged.passUnretained(self).toOpaque())
        var code = group == nil ? core.server_errno(server) : 0
        for record in publication.records where code == 0 { code = add(record) }
        if code == 0, let group { code = core.s_entry_group_commit(group) }
        if code == 0 { code = add(publication.defendedService) }
        guard code != 0 else { return }
        withdraw()
        if code == AvahiProblem.collision {
            events?.publicationCollided(self)
        } else {
            events?.publicationFailed(self, error(code, .advertising))
        }
    }

    func updateText(of publication: Publication) {
        guard isPublished else { return }
        let code = add(publication.updatedText)
        if code != 0 { events?.publicationFailed(self, error(code, .advertising)) }
    }

    func unpublish() {
        isPublished = false
        withdraw()
        if let core { for group in addressGroups.values { core.s_entry_group_free(group) } }
        addressGroups = [:]
    }

    private func withdraw() {
        if let core, let group { core.s_entry_group_free(group) }
        group = nil
    }

    private func groupChanged(_ changed: OpaquePointer?, _ state: AvahiEntryGroupState) {
        guard changed == group else { return }
        switch state {
        case AVAHI_ENTRY_GROUP_ESTABLISHED:
            events?.publicationSucceeded(self)
        case AVAHI_ENTRY_GROUP_COLLISION:
            // Avahi is still going through the group.
            loop.later { [number = groupNumber] in
                guard number == self.groupNumber, self.group != nil else { return }
                self.withdraw()
                self.events?.publicationCollided(self)
            }
        default:
            break
        }
    }

    private func add(_ record: Publication.ResourceRecord) -> Int32 {
        guard let core, let server else { return 0 }
        let made = core.record_new_full(
            record.name.escaped, UInt16(AVAHI_DNS_CLASS_IN), record.type.rawValue, Publication.timeToLive)
        guard let made else { return core.server_errno(server) }
        defer { core.record_unref(made) }
        let isParsed = record.data.withUnsafeBytes { core.rdata_parse(made, $0.baseAddress, $0.count) } == 0
        guard isParsed else { return AvahiProblem.invalidData }
        return core.server_add(server, group, -1, -1, record.flags.avahi, made)
    }

    func addressesChanged() {
        if isPublished { publishAddresses() }
        guard let timer else { return }
        // The stack may have been waiting for the change.
        loop.cancel(timer)
        self.timer = nil
        open()
    }

    /// Publishes the addresses of the host's interfaces. Records that are still valid are not touched. If the kernel
    /// does not list the interfaces, all records count as valid, and it is asked again later.
    private func publishAddresses() {
        if let addressTimer { loop.cancel(addressTimer) }
        addressTimer = nil
        guard let core, let server else { return }
        guard let interfaces = NetworkInterface.usable(named: interface) else {
            addressTimer = loop.schedule(at: loop.now + Self.retry) {
                if self.isPublished { self.publishAddresses() }
            }
            return
        }
        var wanted: Set<PublishedAddress> = []
        for interface in interfaces {
            for address in interface.addresses where address.isLoopback == interface.isLoopback {
                wanted.insert(PublishedAddress(interface: interface.index, bytes: address.bytes))
            }
        }
        for (address, group) in addressGroups where !wanted.contains(address) {
            core.s_entry_group_free(group)
            addressGroups[address] = nil
        }
        for address in wanted where addressGroups[address] == nil {
            guard let group = core.s_entry_group_new(server, nil, nil) else { continue }
            var value = AvahiAddress()
            value.proto = address.bytes.count == 4 ? 0 : 1
            withUnsafeMutableBytes(of: &value.data) { $0.copyBytes(from: address.bytes) }
            let flags: Publication.Flags = [.withoutReverse, .withoutProbing]
            let code = core.server_add_address(
                server, group, address.interface, -1, flags.avahi, host.escaped, &value)
            if code == 0, core.s_entry_group_commit(group) == 0 {
                addressGroups[address] = group
            } else {
                core.s_entry_group_free(group)
            }
        }
    }
}
