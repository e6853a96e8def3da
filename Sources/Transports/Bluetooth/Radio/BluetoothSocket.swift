import CBluetooth
import Glibc
import NighCore

/// A socket of the kernel's Bluetooth, non-blocking; closed when it is let go of, or before.
final class BluetoothSocket {
    /// An `errno`.
    struct Fault: Error {
        let number: Int32
    }

    let descriptor: Int32
    private var isOpen = true

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// A stream of RFCOMM that leaves by `adapter`.
    static func stream(on adapter: BluetoothAddress, channel: UInt8 = 0) throws(Fault) -> BluetoothSocket {
        let socket = try make(SOCK_STREAM, BTPROTO_RFCOMM)
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: adapter.raw, rc_channel: channel)
        try check(call(bind, socket, &address))
        return socket
    }

    /// A channel to the service discovery of a device, leaving by `adapter`. The kernel lets this one be without pairing and
    /// encryption.
    static func serviceDiscovery(on adapter: BluetoothAddress) throws(Fault) -> BluetoothSocket {
        let socket = try make(SOCK_SEQPACKET, BTPROTO_L2CAP)
        var address = sockaddr_l2()
        address.l2_family = sa_family_t(AF_BLUETOOTH)
        address.l2_bdaddr = adapter.raw
        try check(call(bind, socket, &address))
        return socket
    }

    private static func make(_ type: __socket_type, _ proto: Int32) throws(Fault) -> BluetoothSocket {
        let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_BLUETOOTH, Int32(type.rawValue) | flags, proto)
        try check(descriptor)
        return BluetoothSocket(descriptor)
    }

    private static func check(_ status: Int32) throws(Fault) {
        if status < 0 { throw Fault(number: errno) }
    }

    private static func call<Address>(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ socket: BluetoothSocket,
        _ address: inout Address
    ) -> Int32 {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(socket.descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }

    deinit { close() }

    func close() {
        guard isOpen else { return }
        isOpen = false
        Glibc.close(descriptor)
    }

    /// Begins to connect to a channel of RFCOMM there.
    func connect(to device: BluetoothAddress, channel: UInt8) throws(Fault) {
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: device.raw, rc_channel: channel)
        try Self.begin(Self.call(Glibc.connect, self, &address))
    }

    /// Begins to connect to the service discovery there.
    func connectToServiceDiscovery(of device: BluetoothAddress) throws(Fault) {
        var address = sockaddr_l2()
        address.l2_family = sa_family_t(AF_BLUETOOTH)
        address.l2_psm = UInt16(1).littleEndian
        address.l2_bdaddr = device.raw
        try Self.begin(Self.call(Glibc.connect, self, &address))
    }

    private static func begin(_ status: Int32) throws(Fault) {
        guard status < 0, errno != EINPROGRESS, errno != EAGAIN else { return }
        throw Fault(number: errno)
    }

    /// Whether it is connected now, to be asked once the socket can be written to; fails where it will never be.
    func isConnected() throws(Fault) -> Bool {
        let number = takeError()
        guard number == 0 else { throw Fault(number: number) }
        if otherEnd != nil { return true }
        guard errno == ENOTCONN else { throw Fault(number: errno) }
        return false
    }

    /// The error that waits on the socket, or 0.
    func takeError() -> Int32 {
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size) == 0 else { return errno }
        return number
    }

    /// The channel and adapter of this end, of a stream.
    var ownEnd: BluetoothDestination? { end(getsockname) }

    /// The other end of a stream; nil, with `errno`, where it is not connected.
    var otherEnd: BluetoothDestination? { end(getpeername) }

    private func end(
        _ function: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) -> BluetoothDestination? {
        // As large as the addresses of both kinds of sockets; both begin with the same fields but for order.
        var address = sockaddr_rc()
        var size = socklen_t(MemoryLayout<sockaddr_rc>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { function(descriptor, $0, &size) }
        }
        guard status == 0 else { return nil }
        return BluetoothDestination(BluetoothAddress(address.rc_bdaddr), channel: address.rc_channel)
    }

    /// Listens; on a channel that the kernel chooses, where none was bound to.
    func listen(backlog: Int32) throws(Fault) { try Self.check(Glibc.listen(descriptor, backlog)) }

    /// Takes in a connection that came; nil when none waits any more.
    // Inlined into the listener's loop it crashes the optimizer of Swift 6.3.1.
    @inline(never)
    func accept() throws(Fault) -> BluetoothSocket? {
        let accepted = bluetooth_accept(descriptor)
        guard accepted < 0 else { return BluetoothSocket(accepted) }
        guard errno != EAGAIN, errno != EINTR, errno != ECONNABORTED else { return nil }
        throw Fault(number: errno)
    }

    /// How many bytes of memory the kernel has left for what is sent: as many as at first once all has gone out.
    var sendRoom: Int {
        var room: Int32 = 0
        return bluetooth_send_room(descriptor, &room) == 0 ? Int(room) : 0
    }
}
