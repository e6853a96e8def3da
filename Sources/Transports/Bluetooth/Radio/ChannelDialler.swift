import Glibc
import NighCore
import NighUV

/// Runs the dials of Bluetooth. It retries after failures that are known to be temporary: a channel whose last
/// connection is still being closed, or keys that one side has forgotten.
///
/// Loop only.
final class ChannelDialler {
    /// The pause before a dial is retried after a temporary failure; it doubles each time.
    private static let firstRetry = Moment.Span.milliseconds(50)
    /// The first pause while this machine's own kernel still has to close the last connection. It is shorter, because
    /// asking the kernel costs no radio time.
    private static let firstRetryWhenBusy = Moment.Span.milliseconds(5)
    private static let longestRetry = Moment.Span.milliseconds(800)
    /// How many refusals of a dial count as temporary. Right after a connection was closed, a refusal may be.
    private static let refusalLimit = 2

    /// Loop only.
    private final class Attempt {
        let id: DialID
        let target: String
        /// Cancels the step of this dial that is in progress.
        var stop: (() -> Void)?
        var hasRadio = false
        var failures = 0
        var refusals = 0
        var hasForgotten = false
        var lastFault: BluetoothFault?

        init(_ id: DialID, _ target: String) {
            self.id = id
            self.target = target
        }
    }

    private let bluez: BlueZ
    private let search: PeerSearch
    private let loop: UVEventLoop
    private let service: () -> ServiceName?
    private let dials: Dials<BluetoothSocket>
    /// The dials that wait until it is known whether there is an adapter.
    private var waiting: [(Attempt, to: BluetoothDestination)] = []

    /// - Parameters:
    ///   - service: the service to ask a device for if the address has no channel.
    ///   - ended: called with each outcome, never from inside a call.
    init(
        _ bluez: BlueZ, _ search: PeerSearch, on loop: UVEventLoop, service: @escaping () -> ServiceName?,
        ended: @escaping (DialID, Result<BluetoothSocket, NighError>) -> Void
    ) {
        self.bluez = bluez
        self.search = search
        self.loop = loop
        self.service = service
        dials = Dials(scheme: BluetoothTransport.schemeName, on: loop, ended: ended)
    }

    /// Starts a dial; its outcome comes within `timeout`.
    func dial(_ address: TransportAddress, as id: DialID, timeout: Duration) {
        let target = address.description
        do throws(NighError) {
            let destination = try BluetoothDestination(address)
            if let fault = bluez.availability.fault { throw fault.error(.connecting, about: target) }
            let attempt = Attempt(id, target)
            dials.begin(id, timeout: timeout)
            dials.follow(id) {
                NighError(
                    .connecting, .timedOut, peer: target, transport: BluetoothTransport.schemeName,
                    advice: (attempt.lastFault ?? .socket(ETIMEDOUT)).advice)
            } stop: { [weak self] in
                self?.forget(attempt)
            }
            waiting.append((attempt, to: destination))
            availabilityChanged()
        } catch {
            dials.refuse(id, error)
        }
    }

    /// Called when the adapter has changed. The first dials wait until it is known whether there is one.
    func availabilityChanged() {
        let fault = bluez.availability.fault
        guard fault != nil || bluez.availability.adapter != nil else { return }
        let known = waiting
        waiting = []
        for (attempt, destination) in known where dials.isInProgress(attempt.id) {
            if let fault { fail(attempt, fault) } else { takeRadio(attempt, to: destination) }
        }
    }

    private func takeRadio(_ attempt: Attempt, to destination: BluetoothDestination) {
        attempt.hasRadio = true
        search.pauseInquiry(then: { [weak self] in self?.dial(attempt, to: destination) })
    }

    /// Cancels a dial; nothing is reported.
    func cancel(_ id: DialID) { dials.cancel(id) }

    /// Cancels all dials; nothing is reported.
    func stop() { dials.cancelAll() }

    private func dial(_ attempt: Attempt, to destination: BluetoothDestination) {
        guard dials.isInProgress(attempt.id) else { return }
        guard let adapter = bluez.availability.adapter else {
            return fail(attempt, bluez.availability.fault ?? .noDaemon)
        }
        // No adapter receives its own signal.
        guard destination.device != adapter.address else {
            let error = NighError(
                .connecting, .selfDial, peer: attempt.target, transport: BluetoothTransport.schemeName,
                advice: "it is this machine's own adapter")
            return dials.end(attempt.id, .failure(error))
        }
        guard let channel = destination.channel else {
            return queryChannel(attempt, destination.device, by: adapter)
        }
        do throws(SocketFault) {
            let socket = try BluetoothSocket.stream(on: adapter.address)
            try socket.connect(to: destination.device, channel: channel)
            let connecting = try ConnectingSocket(connecting: socket.descriptor, on: loop) {
                [weak self] result in
                switch result {
                case .success: self?.connected(attempt, socket)
                case .failure(let fault): self?.failed(attempt, destination, .socket(fault.number))
                }
            }
            attempt.stop = {
                connecting.cancel()
                socket.close()
            }
        } catch {
            failed(attempt, destination, .socket(error.number))
        }
    }

    /// Asks the device for its channel.
    private func queryChannel(
        _ attempt: Attempt, _ device: BluetoothAddress, by adapter: BlueZObjects.Adapter
    ) {
        guard let service = service() else {
            let error = NighError(
                .connecting, .invalid("address \(attempt.target) without a channel"),
                transport: BluetoothTransport.schemeName,
                advice: "browse or advertise first, so that the service is known")
            return dials.end(attempt.id, .failure(error))
        }
        let query = DeviceQuery(device, for: service, by: adapter.address, on: loop) {
            [weak self] result in
            guard let self, dials.isInProgress(attempt.id) else { return }
            attempt.stop = nil
            let destination = BluetoothDestination(device, channel: nil)
            switch result {
            case .failure(let fault): failed(attempt, destination, fault)
            case .success(let records):
                guard let record = records.first(where: { $0.adapter == device }) else {
                    return failed(attempt, destination, .notOffered)
                }
                dial(attempt, to: BluetoothDestination(device, channel: record.channel))
            }
        }
        attempt.stop = query.stop
    }

    private func failed(_ attempt: Attempt, _ destination: BluetoothDestination, _ fault: BluetoothFault) {
        guard dials.isInProgress(attempt.id) else { return }
        attempt.stop?()
        attempt.lastFault = fault
        guard isTemporary(fault, attempt, destination) else {
            search.askAgain(destination.device)
            return fail(attempt, fault)
        }
        let first = fault == .socket(EBUSY) ? Self.firstRetryWhenBusy : Self.firstRetry
        let pause = first.nanoseconds << Int64(min(attempt.failures, 16))
        attempt.failures += 1
        let span = min(Moment.Span(nanoseconds: pause), Self.longestRetry)
        let timer = loop.schedule(at: loop.now + span) { [weak self] in self?.dial(attempt, to: destination) }
        attempt.stop = { [loop] in loop.cancel(timer) }
    }

    private func isTemporary(
        _ fault: BluetoothFault, _ attempt: Attempt, _ destination: BluetoothDestination
    ) -> Bool {
        guard case .socket(let number) = fault else { return false }
        switch number {
        // The last connection to that channel is still being closed.
        case EBUSY, ECONNRESET, ECONNABORTED, EAGAIN: return true
        case ECONNREFUSED:
            attempt.refusals += 1
            if attempt.refusals <= Self.refusalLimit { return true }
            // It can also mean that the other side has forgotten keys, if discovery sees a session on that channel.
            return search.survey.sees(destination) && forgetKeys(attempt, destination.device)
        case EACCES: return forgetKeys(attempt, destination.device)
        default: return false
        }
    }

    /// Makes bluetoothd forget a device, once per dial, unless a person has paired it: after an adapter was off, one
    /// side may have keys that the other has lost. Returns whether to dial again.
    private func forgetKeys(_ attempt: Attempt, _ address: BluetoothAddress) -> Bool {
        guard !attempt.hasForgotten, let adapter = bluez.availability.adapter else { return false }
        attempt.hasForgotten = true
        guard let device = bluez.objects?.device(address, of: adapter) else { return true }
        guard device.isBonded == false else { return false }
        bluez.call(adapter.path, BlueZObjects.adapterInterface, "RemoveDevice", [.path(device.path)])
        return true
    }

    private func connected(_ attempt: Attempt, _ socket: BluetoothSocket) {
        attempt.stop = nil
        forget(attempt)
        dials.end(attempt.id, .success(socket))
    }

    private func fail(_ attempt: Attempt, _ fault: BluetoothFault) {
        dials.end(attempt.id, .failure(fault.error(.connecting, about: attempt.target)))
    }

    private func forget(_ attempt: Attempt) {
        waiting.removeAll { $0.0 === attempt }
        attempt.stop?()
        attempt.stop = nil
        if attempt.hasRadio { search.dialEnded() }
        attempt.hasRadio = false
    }
}
