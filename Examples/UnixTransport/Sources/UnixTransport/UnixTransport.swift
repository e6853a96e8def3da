// The transport: what the session calls, and what it is told. The files beside this one know the folder and the sockets.
import Glibc
import NighCore
import NighPlugins
import NighUV

/// Pipes between the programs of one user on one machine, which find each other in a folder.
///
/// All state is confined to the loop from `start` on; hence `@unchecked Sendable`.
final class UnixTransport: Transport, @unchecked Sendable {
    let scheme = "unix"
    let capabilities = TransportCapabilities(UnixTransport.costs)
    private let path: String
    private var loop: UVEventLoop?
    private var foreign: ForeignLoop?
    private var events: (any TransportEvents)?

    private var condition = TransportCondition.up
    private var folder: Folder?
    private var watch: FolderWatch?
    private var nextLook: LoopTimer?

    private var advertisement: Advertisement?
    private var presence: Presence?
    private var advertisingError: NighError?
    private var service: ServiceName?
    private var search = 0
    private var seen: [TransportAddress: Advertisement] = [:]

    private var dials: Set<DialID> = []
    private var pipes: [ObjectIdentifier: SocketPipe] = [:]

    init(folder: String) { path = folder }

    /// Everything is told in a later turn, and nothing after `shutdown`.
    private func later(_ work: @escaping @Sendable (UnixTransport) -> Void) {
        loop?.execute { [weak self] in if let self, events != nil { work(self) } }
    }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        guard let loop = loop as? UVEventLoop else {
            foreign = ForeignLoop(loop, events, for: self)
            return
        }
        (self.loop, self.events) = (loop, events)
        later { $0.look() }
    }

    func shutdown() {
        (events, foreign, advertisement) = (nil, nil, nil)
        stopBrowsing()
        if let nextLook { loop?.cancel(nextLook) }
        presence?.end()
        (presence, watch, folder) = (nil, nil, nil)
        dials = []
        for pipe in Array(pipes.values) { pipe.finish() }
    }

    // MARK: The folder

    /// Looks whether the folder is as it must be, and who is there, and mends what is gone. Comes whenever something has
    /// changed, and every two seconds for what nobody tells: a folder made anew, somebody killed. What it tells may call back.
    private func look() {
        guard let loop, events != nil else { return }
        if let nextLook { loop.cancel(nextLook) }
        nextLook = loop.schedule(at: loop.now + .seconds(2)) { [weak self] in self?.look() }
        do throws(NighError) {
            if try folder?.isThere() != true {
                leave()
                let found = try Folder(at: path)
                folder = found
                watch = FolderWatch(found, on: loop) { [weak self] in self?.look() }
            }
            become(.up)
        } catch {
            leave()
            become(.down(error))
        }
        presence?.resume()
        if presence?.isWhole != true { publish() }
        tellSightings()
    }

    private func leave() {
        (folder, watch) = (nil, nil)
        withdraw()
    }

    private func become(_ next: TransportCondition) {
        guard next != condition else { return }
        condition = next
        events?.transportChanged(next, by: self)
    }

    /// What is wrong with the folder, as an error of what needs it.
    private func folderError(_ stage: NighError.Stage) -> NighError? {
        guard case .down(var error) = condition else { return nil }
        error.stage = stage
        return error
    }

    // MARK: Being found

    func advertise(_ advertisement: Advertisement) {
        (self.advertisement, advertisingError) = (advertisement, nil)
        later { $0.publish() }
    }

    func updateAdvertisement(_ advertisement: Advertisement) {
        if self.advertisement != nil { self.advertisement = advertisement }
        later { $0.publish() }
    }

    func stopAdvertising() {
        (advertisement, advertisingError) = (nil, nil)
        presence?.end()
        later { if $0.presence?.isWhole == false { $0.withdraw() } }
    }

    private func publish() {
        guard let loop, let advertisement else { return }
        do throws(NighError) {
            if let error = folderError(.advertising) { throw error }
            guard let folder else { return }
            if presence?.isWhole == false { withdraw() }
            let isNew = presence == nil
            if isNew { presence = try Presence(in: folder, on: loop) { [weak self] in self?.accepted($0) } }
            try presence?.show(advertisement)
            advertisingError = nil
            if isNew, let presence { events?.listeningChanged([presence.address], by: self) }
            events?.advertised(as: advertisement.name, by: self)
        } catch {
            withdraw()
            if error != advertisingError { events?.advertisingFailed(error, by: self) }
            advertisingError = error
        }
    }

    private func withdraw() {
        guard let presence else { return }
        presence.end()
        self.presence = nil
        events?.listeningChanged([], by: self)
    }

    // MARK: Finding

    func browse(_ service: ServiceName) {
        stopBrowsing()
        self.service = service
        later { [search] transport in
            guard search == transport.search else { return }
            if let error = transport.folderError(.browsing) {
                transport.events?.browsingFailed(error, by: transport)
            }
            transport.tellSightings()
        }
    }

    func stopBrowsing() {
        (service, seen) = (nil, [:])
        search += 1
    }

    /// Tells what is new in the folder since the last time. Whoever is told may begin another search.
    private func tellSightings() {
        guard let service, let all = folder == nil ? [:] : folder?.advertisements() else { return }
        let (asked, before) = (search, seen)
        seen = [:]
        for (id, other) in all where other.service == service && other.peer != advertisement?.peer {
            seen[TransportAddress(scheme: scheme, value: "\(path)/\(Folder.socket(of: id))")] = other
        }
        let now = seen
        for address in before.keys where now[address] == nil && asked == search {
            events?.routeLost(address, by: self)
        }
        for (address, other) in now where before[address] != other && asked == search {
            let sighting = Sighting(address: address, advertisement: other)
            if before[address] == nil {
                events?.routeFound(sighting, by: self)
            } else {
                events?.routeChanged(sighting, by: self)
            }
        }
    }

    // MARK: Pipes

    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        foreign?.refuse(dial, by: self)
        guard let loop else { return }
        let deadline = loop.now + Moment.Span(timeout)
        dials.insert(dial)
        later { $0.attempt(dial, to: address, until: deadline) }
    }

    func cancelDial(_ dial: DialID) { dials.remove(dial) }

    private func attempt(_ dial: DialID, to address: TransportAddress, until deadline: Moment) {
        guard let loop, dials.contains(dial) else { return }
        do throws(NighError) {
            if let descriptor = try UnixSocket.connect(to: address) {
                let pipe = try take(descriptor, remoteAddress: address)
                dials.remove(dial)
                events?.pipeOpened(pipe, dial: dial, by: self)
            } else if loop.now < deadline {
                // Nothing tells when there is room again among those who wait.
                loop.schedule(at: min(deadline, loop.now + .milliseconds(20))) { [weak self] in
                    self?.attempt(dial, to: address, until: deadline)
                }
            } else {
                throw NighError(.connecting, .timedOut, peer: address.description, transport: scheme)
            }
        } catch {
            dials.remove(dial)
            events?.dialFailed(dial, error: error, by: self)
        }
    }

    private func accepted(_ descriptor: Int32) {
        guard let pipe = try? take(descriptor, remoteAddress: nil) else { return }
        events?.pipeOpened(pipe, dial: nil, by: self)
    }

    private func take(_ descriptor: Int32, remoteAddress: TransportAddress?) throws(NighError) -> SocketPipe {
        do throws(NighError) {
            guard let loop else { throw NighError(.connecting, .closed, transport: scheme) }
            let pipe = try SocketPipe(
                descriptor: descriptor, scheme: scheme, remoteAddress: remoteAddress, on: loop)
            pipes[ObjectIdentifier(pipe)] = pipe
            pipe.didFinish = { [weak self] in self?.pipes[ObjectIdentifier($0)] = nil }
            return pipe
        } catch {
            close(descriptor)
            throw error
        }
    }

    // MARK: For a person

    func diagnose() -> [Diagnosis] {
        guard foreign == nil else { return [ForeignLoop.diagnosis(of: scheme)] }
        func line(_ subject: String, _ error: NighError?, _ finding: String) -> Diagnosis {
            Diagnosis(
                subject, error == nil ? .pass : .fail, error?.cause.description ?? finding,
                advice: error?.advice)
        }
        return [
            line("folder", folderError(.starting), "\(path) is yours alone"),
            line("listening", advertisingError, presence.map { "at \($0.address)" } ?? "nobody has asked to"),
            line(
                "peers", folderError(.browsing),
                service == nil ? "nobody has asked to look" : "\(seen.count) seen"),
            line("pipes", nil, "\(pipes.count) open, \(dials.count) being opened"),
        ]
    }
}
