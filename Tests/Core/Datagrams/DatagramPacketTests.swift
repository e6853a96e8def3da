import Testing

@testable import NighCore

@Suite("The header of a packet") struct DatagramPacketTests {
    @Test("has a connection and a number, and is missing if a byte of it is")
    func header() {
        var packet = [UInt8](repeating: 0, count: 16)
        packet.withUnsafeMutableBytes {
            DatagramPacket.writeHeader(connection: 0x0102, number: 0x0304, to: $0)
        }
        #expect(packet == [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4])
        packet.withUnsafeBytes { bytes in
            #expect(DatagramPacket.connection(of: bytes) == 0x0102)
            #expect(DatagramPacket.number(of: bytes) == 0x0304)
            #expect(DatagramPacket.connection(of: .init(rebasing: bytes[..<15])) == nil)
        }
    }
}
