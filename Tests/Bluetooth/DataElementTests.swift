import NighBluetooth
import Testing

/// Tests how the bytes of other devices' service discovery are parsed.
struct DataElementTests {
    private func read(_ bytes: [UInt8]) -> DataElement? {
        var bytes = bytes[...]
        return DataElement(from: &bytes)
    }

    @Test func `Every kind of value is read`() {
        #expect(read([0x08, 7]) == .unsigned(7))
        #expect(read([0x09, 1, 0]) == .unsigned(256))
        #expect(read([0x0A, 0xFF, 0xFF, 0xFF, 0xFF]) == .unsigned(0xFFFF_FFFF))
        #expect(read([0x0B] + [UInt8](repeating: 0xFF, count: 8)) == .unsigned(.max))
        #expect(read([0x19, 0, 3]) == .uuid(BluetoothUUID(short: 3)))
        #expect(read([0x1A, 0, 0, 0, 3]) == .uuid(BluetoothUUID(short: 3)))
        let uuid = BluetoothUUID(of: "tests")
        #expect(read([0x1C] + uuid.bytes) == .uuid(uuid))
        #expect(read([0x25, 2, 0x68, 0x69]) == .text([0x68, 0x69]))
        #expect(read([0x26, 0, 1, 0x68]) == .text([0x68]))
        #expect(read([0x27, 0, 0, 0, 1, 0x68]) == .text([0x68]))
        #expect(read([0x28, 1]) == .boolean(true))
        #expect(read([0x35, 0]) == .sequence([]))
        #expect(read([0x35, 4, 0x08, 1, 0x08, 2]) == .sequence([.unsigned(1), .unsigned(2)]))
        #expect(read([0x3D, 2, 0x08, 1]) == .sequence([.unsigned(1)]))
        // Nil, a signed number, a URL, a number of 16 bytes.
        for bytes in [[0x00], [0x10, 0xFF], [0x45, 1, 0x68], [0x0C] + [UInt8](repeating: 1, count: 16)] {
            #expect(read(bytes) == .other)
        }
    }

    @Test func `Bytes after a value are not consumed`() {
        var bytes: ArraySlice<UInt8> = [0x25, 1, 0x68, 0x08, 5, 0x77]
        #expect(DataElement(from: &bytes) == .text([0x68]))
        #expect(DataElement(from: &bytes) == .unsigned(5))
        #expect(bytes == [0x77])
    }

    @Test(
        arguments: [
            [], [0x01], [0x07], [0x08], [0x09, 1], [0x0B, 1, 2, 3], [0x19, 0], [0x1C, 1, 2], [0x18, 1],
            [0x1B] + [UInt8](repeating: 1, count: 8), [0x25], [0x25, 3, 1, 2], [0x26, 0], [0x26, 0, 2, 1],
            [0x27, 0xFF, 0xFF, 0xFF, 0xFF, 1], [0x27, 0, 0, 0], [0x35, 1, 0x09], [0x35, 3, 0x25, 5, 1],
            [0x36, 0xFF, 0xFF, 0x08], [0x37, 0x7F, 0xFF, 0xFF, 0xFF],
        ] as [[UInt8]])
    func `Invalid bytes are rejected`(_ bytes: [UInt8]) {
        #expect(read(bytes) == nil)
    }

    @Test func `Truncated values are rejected`() throws {
        let whole = try Samples.record(name: "Puma").list(of: Set(0...0xFFFF)).bytes
        #expect(read(whole) != nil)
        for count in 0..<whole.count { #expect(read(Array(whole.prefix(count))) == nil) }
    }

    @Test func `Nesting depth is bounded`() {
        func nested(_ depth: Int) -> [UInt8] {
            (0..<depth).reduce([0x08, 1]) { inner, _ in
                [0x37] + SentValue.bigEndian(UInt64(inner.count), 4) + inner
            }
        }
        #expect(read(nested(7)) != nil)
        #expect(read(nested(8)) == nil)
        #expect(read(nested(10_000)) == nil)
    }

    @Test func `A value is read only as its own kind`() {
        let values: [DataElement] = [.unsigned(1), .text([1]), .sequence([]), .boolean(true), .other]
        #expect(values.compactMap(\.unsigned) == [1])
        #expect(values.compactMap(\.text) == [[1]])
        #expect(values.compactMap(\.sequence) == [[]])
    }
}
