import CBluetooth
import Glibc
import NighCore
import NighUV

/// Asks one device which sessions of a service it has: connects to its service discovery, and runs a `ServiceSearch`
/// over the connection.
///
/// Loop only.
final class DeviceQuery {
    /// The time after which a device that does not answer counts as absent or unwilling. Paging a device takes five
    /// seconds.
    static let timeout = Moment.Span.seconds(10)
    /// The maximum size of a packet.
    private static let packetLimit = 65_535

    private let loop: UVEventLoop
    private let device: BluetoothAddress
    private let ended: (Result<[SessionRecord], BluetoothFault>) -> Void
    private var search: ServiceSearch
    private var socket: BluetoothSocket?
    private var connecting: ConnectingSocket?
    private var watch: DescriptorWatch?
    private let deadline: Moment
    private var timer: LoopTimer?
    private var isOver = false
    private var isStopped = false

    /// Starts. `ended` is called once, never from inside a call, and not after `stop`.
    init(
        _ device: BluetoothAddress, for service: ServiceName, by adapter: BluetoothAddress,
        on loop: UVEventLoop, ended: @escaping (Result<[SessionRecord], BluetoothFault>) -> Void
    ) {
        self.device = device
        self.loop = loop
        self.ended = ended
        search = ServiceSearch(for: service)
        deadline = loop.now + Self.timeout
        timer = loop.schedule(at: deadline) { [weak self] in
            self?.finish(.failure(.socket(ETIMEDOUT)))
        }
        loop.later { [weak self] in self?.connect(by: adapter) }
    }

    /// Cancels the query; nothing is reported. The connection stays open until the device has answered, or for the rest
    /// of the time: one that ends before bluetoothd has accepted it may leave bluetoothd waiting in `accept`, where it
    /// does nothing else until the next device connects to its service discovery.
    func stop() {
        isStopped = true
        guard let timer, socket != nil else { return end() }
        loop.cancel(timer)
        // Strong, so that this object lives as long as its connection.
        self.timer = loop.schedule(at: deadline) { self.end() }
    }

    private func end() {
        isOver = true
        if let timer { loop.cancel(timer) }
        timer = nil
        connecting?.cancel()
        connecting = nil
        watch?.cancel()
        watch = nil
        socket?.close()
        socket = nil
    }

    private func connect(by adapter: BluetoothAddress) {
        guard !isOver else { return }
        do throws(SocketFault) {
            let socket = try BluetoothSocket.serviceDiscovery(on: adapter)
            try socket.connectToServiceDiscovery(of: device)
            self.socket = socket
            connecting = try ConnectingSocket(connecting: socket.descriptor, on: loop) { [weak self] in
                self?.connected($0, socket)
            }
        } catch {
            finish(.failure(.socket(error.number)))
        }
    }

    private func connected(_ result: Result<Void, SocketFault>, _ socket: BluetoothSocket) {
        switch result {
        case .failure(let fault): finish(.failure(.socket(fault.number)))
        case .success:
            do throws(NighError) {
                watch = try loop.watch(socket.descriptor, for: .readable) { [weak self] _ in self?.read() }
            } catch {
                return finish(.failure(.socket(EMFILE)))
            }
            send(search.begin())
        }
    }

    private func send(_ packet: [UInt8]) {
        guard let socket else { return }
        let sent = Glibc.send(socket.descriptor, packet, packet.count, Int32(MSG_NOSIGNAL))
        if sent != packet.count { finish(.failure(.socket(sent < 0 ? errno : EMSGSIZE))) }
    }

    private func read() {
        guard let socket else { return }
        var packet = [UInt8](repeating: 0, count: Self.packetLimit)
        let count = recv(socket.descriptor, &packet, packet.count, 0)
        guard count > 0 else {
            let number = count < 0 ? errno : ECONNRESET
            if number != EAGAIN && number != EINTR { finish(.failure(.socket(number))) }
            return
        }
        guard !isStopped else { return end() }
        switch search.received(Array(packet.prefix(count))) {
        case .send(let packet): send(packet)
        case .done(let records): finish(.success(records))
        case .failed: finish(.failure(.socket(EPROTO)))
        }
    }

    private func finish(_ result: Result<[SessionRecord], BluetoothFault>) {
        guard !isOver else { return }
        end()
        loop.later { if !self.isStopped { self.ended(result) } }
    }
}
