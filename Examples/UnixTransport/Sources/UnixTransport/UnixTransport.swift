// The transport: the calls of the session, and the events for it. The other files know the folder and sockets.
import NighTransport

/// Opens pipes between the programs of one user on one machine, which find each other in a folder.
/// `@unchecked Sendable`: all state is confined to the loop from `start` on.
final class UnixTransport: Transport, @unchecked Sendable {
    let scheme = "unix"
    let capabilities = TransportCapabilities(UnixTransport.costs)
    private let path: String
    private var loop: UVEventLoop?
    private var unsupportedLoop: UnsupportedLoop?
    private var events: (any TransportEvents)?
    private var folder: Folder?
    private var folderError: NighError?
    private var nextCheck: LoopTimer?
    private var advertisement: Advertisement?
    private var advertisingError: NighError?
    private var presence: Presence?
    private var service: ServiceName?
    private var seen: [TransportAddress: Advertisement] = [:]
    private var dials: SocketDials?
    private var pipes: [ObjectIdentifier: SocketPipe] = [:]

    init(folder: String) { path = folder }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        guard let loop = loop as? UVEventLoop else {
            return unsupportedLoop = UnsupportedLoop(loop, events, for: self)
        }
        (self.loop, self.events) = (loop, events)
        dials = SocketDials(scheme: scheme, on: loop) { [weak self] in self?.dialEnded($0, $1) }
        later { $0.check() }
    }

    /// Reports everything in a later turn, and nothing after `shutdown`.
    private func later(_ work: @escaping @Sendable (UnixTransport) -> Void) {
        loop?.execute { [weak self] in if let self, events != nil { work(self) } }
    }

    func shutdown() {
        (events, unsupportedLoop, presence, folder, advertisement, service) = (nil, nil, nil, nil, nil, nil)
        dials?.cancelAll()
        if let nextCheck { loop?.cancel(nextCheck) }
        for pipe in Array(pipes.values) { pipe.finish() }
    }

    /// Checks the folder, reports changes in it, and advertises again if necessary. Runs when something there has
    /// changed, and every two seconds for changes that nothing reports, such as a folder that is made again.
    private func check() {
        guard let loop, events != nil else { return }
        if let nextCheck { loop.cancel(nextCheck) }
        nextCheck = loop.schedule(at: loop.now + .seconds(2)) { [weak self] in self?.check() }
        var (found, error) = (Folder?.none, NighError?.none)
        do throws(NighError) {
            found = try folder?.isInPlace() == true ? folder : Folder(at: path)
        } catch let fault {
            error = fault
        }
        if found !== folder {
            withdraw()
            folder = found
            found?.watch(on: loop) { [weak self] in self?.check() }
        }
        if error != folderError {
            folderError = error
            events?.transportChanged(error.map { .down($0) } ?? .up, by: self)
        }
        if presence == nil { publish() }
        reportSightings()
    }

    func advertise(_ advertisement: Advertisement) {
        (self.advertisement, advertisingError) = (advertisement, nil)
        later { $0.publish() }
    }

    func updateAdvertisement(_ new: Advertisement) { if advertisement != nil { advertise(new) } }

    func stopAdvertising() {
        (advertisement, advertisingError) = (nil, nil)
        withdraw()
    }

    /// Puts the advertisement into the folder. A failure is reported once, and the next check tries again.
    private func publish() {
        guard let loop, let folder, let advertisement else { return }
        do throws(NighError) {
            let isNew = presence == nil
            if isNew {
                presence = try Presence(
                    in: folder, on: loop, opened: { [weak self] in self?.opened($0, by: nil) },
                    failed: { [weak self] in self?.advertisingFailed($0) })
            }
            try presence?.show(advertisement)
            advertisingError = nil
            if isNew, let presence { events?.listeningChanged([presence.address], by: self) }
            events?.advertised(as: advertisement.name, by: self)
        } catch {
            withdraw()
            advertisingFailed(error)
        }
    }

    private func advertisingFailed(_ error: NighError) {
        if error != advertisingError { events?.advertisingFailed(error, by: self) }
        advertisingError = error
    }

    private func withdraw() {
        guard presence != nil else { return }
        presence = nil
        later { if $0.presence == nil { $0.events?.listeningChanged([], by: $0) } }
    }

    func browse(_ service: ServiceName) {
        (self.service, seen) = (service, [:])
        later { $0.reportSightings() }
    }

    func stopBrowsing() { (service, seen) = (nil, [:]) }

    /// Reports new peers in the folder, and those that are gone. The receiver may begin another search, or end this
    /// one.
    private func reportSightings() {
        guard let service, let all = folder == nil ? [:] : folder?.advertisements() else { return }
        var now: [TransportAddress: Advertisement] = [:]
        for (id, other) in all where other.service == service && other.peer != advertisement?.peer {
            now[TransportAddress(scheme: scheme, value: "\(path)/\(id).socket")] = other
        }
        for address in Array(seen.keys) where now[address] == nil && seen.removeValue(forKey: address) != nil
        {
            events?.routeLost(address, by: self)
        }
        for (address, other) in now where seen[address] != other && self.service == service {
            let report =
                seen.updateValue(other, forKey: address) == nil ? events?.routeFound : events?.routeChanged
            report?(Sighting(address: address, advertisement: other), self)
        }
    }

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        unsupportedLoop?.refuse(dial, by: self)
        do throws(NighError) {
            try UnixSocket.withAddress(address) { (bytes) throws(NighError) in
                dials?.dial(
                    dial, with: UnixSocket.make(), to: bytes, remoteAddress: address, timeout: timeout)
            }
        } catch {
            dials?.refuse(dial, error)
        }
    }

    func cancelDial(_ dial: DialID) { dials?.cancel(dial) }

    private func dialEnded(_ dial: DialID, _ outcome: Result<SocketPipe, NighError>) {
        switch outcome {
        case .success(let pipe): opened(pipe, by: dial)
        case .failure(let error): events?.dialFailed(dial, error: error, by: self)
        }
    }

    /// Keeps a pipe until it is over, so that `shutdown` can end it.
    private func opened(_ pipe: SocketPipe, by dial: DialID?) {
        pipes[ObjectIdentifier(pipe)] = pipe
        pipe.didFinish = { [weak self] in self?.pipes[ObjectIdentifier($0)] = nil }
        events?.pipeOpened(pipe, dial: dial, by: self)
    }

    func diagnose() -> [Diagnosis] {
        guard unsupportedLoop == nil else { return [UnsupportedLoop.diagnosis(of: scheme)] }
        let isChecked = folder != nil || folderError != nil
        guard isChecked else { return [Diagnosis("folder", .warn, "not checked yet", isPending: true)] }
        func line(_ subject: String, _ finding: String, _ error: NighError? = nil) -> Diagnosis {
            guard let error else { return Diagnosis(subject, .pass, finding) }
            return Diagnosis(subject, .fail, "\(error.cause)", advice: error.advice)
        }
        return [
            line("folder", "\(path) is yours alone", folderError),
            line("listening", presence.map { "at \($0.address)" } ?? "not now", advertisingError),
            line("peers", service == nil ? "not browsing" : "\(seen.count) seen"),
            line("pipes", "\(pipes.count) open, \(dials?.count ?? 0) being opened"),
        ]
    }
}
