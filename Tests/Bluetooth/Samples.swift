import NighBluetooth
import NighCore

/// Sessions and devices for tests.
enum Samples {
    static let service: ServiceName = "tests"
    static let device = BluetoothAddress(number: 0x00AA_0100_0042)
    static let other = BluetoothAddress(number: 0x00AA_0100_0043)
    /// Four different peers. Their identities do not matter.
    static let peers = (0..<4).map { _ in Identity.ephemeral().peerID }

    static func advertisement(
        _ peer: Int = 0, name: String = "Puma", info: DiscoveryInfo = .none
    ) -> Advertisement {
        Advertisement(service: service, peer: peers[peer], name: DisplayName(fitting: name), info: info)
    }

    static func sessionRecord(
        _ peer: Int = 0, name: String = "Puma", channel: UInt8 = 3, adapter: BluetoothAddress = device,
        handle: UInt32 = 0x1_0005
    ) -> SessionRecord {
        SessionRecord(advertisement(peer, name: name), channel: channel, adapter: adapter, handle: handle)
    }

    /// A session's record as bluetoothd keeps it.
    static func record(name: String) throws -> KeptRecord {
        try KeptRecord(xml: sessionRecord(name: name).xml, handle: 0x1_0005)
    }
}
