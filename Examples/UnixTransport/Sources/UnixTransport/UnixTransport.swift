// The transport: what the session calls, and what it is told. The files beside this know the folder and sockets.
import NighCore
import NighPlugins
import NighUV

/// Pipes between the programs of one user on one machine, which find each other in a folder. All state is confined to
/// the loop from `start` on; hence `@unchecked Sendable`.
final class UnixTransport: Transport, @unchecked Sendable {
    let scheme = "unix"
    let capabilities = TransportCapabilities(UnixTransport.costs)
    private let path: String
    private var loop: UVEventLoop?
    private var foreign: ForeignLoop?
    private var events: (any TransportEvents)?
    private var folder: Folder?
    private var folderError: NighError?
    private var nextLook: LoopTimer?
    private var advertisement: Advertisement?
    private var advertisingError: NighError?
    private var presence: Presence?
    private var service: ServiceName?
    private var seen: [TransportAddress: Advertisement] = [:]
    private var dials: SocketDials?
    private var pipes: [ObjectIdentifier: SocketPipe] = [:]

    init(folder: String) { path = folder }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        guard let loop = loop as? UVEventLoop else { return foreign = ForeignLoop(loop, events, for: self) }
        (self.loop, self.events) = (loop, events)
        dials = SocketDials(scheme: scheme, on: loop) { [weak self] in self?.dialEnded($0, $1) }
        later { $0.look() }
    }

    /// Everything is told in a later turn, nothing after `shutdown`.
    private func later(_ work: @escaping @Sendable (UnixTransport) -> Void) {
        loop?.execute { [weak self] in if let self, events != nil { work(self) } }
    }

    func shutdown() {
        (events, foreign, presence, folder, advertisement, service) = (nil, nil, nil, nil, nil, nil)
        dials?.cancelAll()
        if let nextLook { loop?.cancel(nextLook) }
        for pipe in Array(pipes.values) { pipe.finish() }
    }

    /// Looks whether the folder is as it must be and who is there, and puts right what is not. Comes when something
    /// has changed there, and every two seconds for what nobody tells, such as a folder that is made anew.
    private func look() {
        guard let loop, events != nil else { return }
        if let nextLook { loop.cancel(nextLook) }
        nextLook = loop.schedule(at: loop.now + .seconds(2)) { [weak self] in self?.look() }
        var (found, error) = (Folder?.none, NighError?.none)
        do throws(NighError) {
            found = try folder?.isThere() == true ? folder : Folder(at: path)
        } catch let fault {
            error = fault
        }
        if found !== folder {
            withdraw()
            folder = found
            found?.watch(on: loop) { [weak self] in self?.look() }
        }
        if error != folderError {
            folderError = error
            events?.transportChanged(error.map { .down($0) } ?? .up, by: self)
        }
        if presence == nil { publish() }
        tellSightings()
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

    /// Brings what is advertised into the folder. Where it fails, that is told once, and the next look tries again.
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
        later { $0.tellSightings() }
    }

    func stopBrowsing() { (service, seen) = (nil, [:]) }

    /// Tells what is new in the folder. Whoever is told may begin another search, or end this one.
    private func tellSightings() {
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
            let tell =
                seen.updateValue(other, forKey: address) == nil ? events?.routeFound : events?.routeChanged
            tell?(Sighting(address: address, advertisement: other), self)
        }
    }

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        foreign?.refuse(dial, by: self)
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

    /// A pipe is known until it is over, so that `shutdown` can end it.
    private func opened(_ pipe: SocketPipe, by dial: DialID?) {
        pipes[ObjectIdentifier(pipe)] = pipe
        pipe.didFinish = { [weak self] in self?.pipes[ObjectIdentifier($0)] = nil }
        events?.pipeOpened(pipe, dial: dial, by: self)
    }

    func diagnose() -> [Diagnosis] {
        guard foreign == nil else { return [ForeignLoop.diagnosis(of: scheme)] }
        let isLookedAt = folder != nil || folderError != nil
        guard isLookedAt else { return [Diagnosis("folder", .warn, "not looked at yet", isPending: true)] }
        func line(_ subject: String, _ finding: String, _ error: NighError? = nil) -> Diagnosis {
            guard let error else { return Diagnosis(subject, .pass, finding) }
            return Diagnosis(subject, .fail, "\(error.cause)", advice: error.advice)
        }
        return [
            line("folder", "\(path) is yours alone", folderError),
            line("listening", presence.map { "at \($0.address)" } ?? "not now", advertisingError),
            line("peers", service == nil ? "nobody looks for any" : "\(seen.count) seen"),
            line("pipes", "\(pipes.count) open, \(dials?.count ?? 0) being opened"),
        ]
    }
}
