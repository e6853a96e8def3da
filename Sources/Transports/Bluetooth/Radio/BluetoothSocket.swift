import CBluetooth
import Glibc
import NighCore
import NighUV

/// A non-blocking socket of the kernel's Bluetooth. It is closed when it is released, or before.
final class BluetoothSocket {
    let descriptor: Int32
    private var isOpen = true

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Makes an RFCOMM stream socket that is bound to `adapter`.
    static func stream(on adapter: BluetoothAddress, channel: UInt8 = 0) throws(SocketFault)
        -> BluetoothSocket
    {
        let socket = try make(SOCK_STREAM, BTPROTO_RFCOMM)
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: adapter.raw, rc_channel: channel)
        try check(call(bind, socket, &address))
        return socket
    }

    /// Makes a socket for the service discovery of a device, bound to `adapter`. The kernel allows it without pairing
    /// and encryption.
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

    /// Gives up the descriptor: another object has taken it over and closes it.
    func releaseDescriptor() { isOpen = false }

    func close() {
        guard isOpen else { return }
        isOpen = false
        Glibc.close(descriptor)
    }

    /// Begins to connect to an RFCOMM channel of `device`.
    func connect(to device: BluetoothAddress, channel: UInt8) throws(SocketFault) {
        var address = sockaddr_rc(
            rc_family: sa_family_t(AF_BLUETOOTH), rc_bdaddr: device.raw, rc_channel: channel)
        try Self.begin(Self.call(Glibc.connect, self, &address))
    }

    /// Begins to connect to the service discovery of `device`.
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

    /// The adapter and channel of this end of a stream.
    var ownEnd: BluetoothDestination? { end(getsockname) }

    /// The other end of a stream; nil, with `errno` set, if it is not connected.
    var otherEnd: BluetoothDestination? { end(getpeername) }

    private func end(
        _ function: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) -> BluetoothDestination? {
        // Streams only: the address of an L2CAP socket is longer and has another layout.
        var address = sockaddr_rc()
        var size = socklen_t(MemoryLayout<sockaddr_rc>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { function(descriptor, $0, &size) }
        }
        guard status == 0 else { return nil }
        return BluetoothDestination(BluetoothAddress(address.rc_bdaddr), channel: address.rc_channel)
    }

    /// Listens on the channel that the socket is bound to, or else on one that the kernel chooses.
    func listen(backlog: Int32) throws(SocketFault) { try Self.check(Glibc.listen(descriptor, backlog)) }

    /// The number of bytes that the kernel has left for sending. It is back at its first value once everything has been
    /// sent.
    var sendRoom: Int {
        var room: Int32 = 0
        return bluetooth_send_room(descriptor, &room) == 0 ? Int(room) : 0
    }
}
