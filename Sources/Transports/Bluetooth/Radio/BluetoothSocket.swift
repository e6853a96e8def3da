import CBluetooth
import Glibc
import NighCore
import NighUV

/// A socket of the kernel's Bluetooth, non-blocking; closed when it is let go of, or before.
final class BluetoothSocket {
    let descriptor: Int32
    private var isOpen = true

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// A stream of RFCOMM that leaves by `adapter`.
    static func stream(on adapter: BluetoothAddress, channel: UInt8 = 0) throws(SocketFault)
        -> BluetoothSocket
    {
        let socket = try make(SOCK_STREAM, BTPROTO_RFCOMM)
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: adapter.raw, rc_channel: channel)
        try check(call(bind, socket, &address))
        return socket
    }

    /// A channel to the service discovery of a device, leaving by `adapter`. The kernel lets this one be without pairing and
    /// encryption.
    static func serviceDiscovery(on adapter: BluetoothAddress) throws(SocketFault) -> BluetoothSocket {
        let socket = try make(SOCK_SEQPACKET, BTPROTO_L2CAP)
        var address = sockaddr_l2()
        address.l2_family = sa_family_t(AF_BLUETOOTH)
        address.l2_bdaddr = adapter.raw
        try check(call(bind, socket, &address))
        return socket
    }

    private static func make(_ type: __socket_type, _ proto: Int32) throws(SocketFault) -> BluetoothSocket {
        let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_BLUETOOTH, Int32(type.rawValue) | flags, proto)
        try check(descriptor)
        return BluetoothSocket(descriptor)
    }

    private static func check(_ status: Int32) throws(SocketFault) {
        if status < 0 { throw SocketFault(errno) }
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

    /// Has somebody else close it, who has taken over its descriptor.
    func giveAway() { isOpen = false }

    func close() {
        guard isOpen else { return }
        isOpen = false
        Glibc.close(descriptor)
    }

    /// Begins to connect to a channel of RFCOMM there.
    func connect(to device: BluetoothAddress, channel: UInt8) throws(SocketFault) {
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: device.raw, rc_channel: channel)
        try Self.begin(Self.call(Glibc.connect, self, &address))
    }

    /// Begins to connect to the service discovery there.
    func connectToServiceDiscovery(of device: BluetoothAddress) throws(SocketFault) {
        var address = sockaddr_l2()
        address.l2_family = sa_family_t(AF_BLUETOOTH)
        address.l2_psm = UInt16(1).littleEndian
        address.l2_bdaddr = device.raw
        try Self.begin(Self.call(Glibc.connect, self, &address))
    }

    private static func begin(_ status: Int32) throws(SocketFault) {
        guard status < 0, errno != EINPROGRESS, errno != EAGAIN else { return }
        throw SocketFault(errno)
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
    func listen(backlog: Int32) throws(SocketFault) { try Self.check(Glibc.listen(descriptor, backlog)) }

    /// How many bytes of memory the kernel has left for what is sent: as many as at first once all has gone out.
    var sendRoom: Int {
        var room: Int32 = 0
        return bluetooth_send_room(descriptor, &room) == 0 ? Int(room) : 0
    }
}
