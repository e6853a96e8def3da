/// The content of a `stream-control` frame, about one stream of a conversation.
package enum StreamControl: Equatable {
    /// The sender opens the stream under this name and for this purpose.
    case open(name: String, for: StreamPurpose = .program)
    /// The sender accepts this many bytes of the stream in all.
    case credit(UInt64)
    /// The sender has written all its bytes.
    case finish
    /// The sender writes no more, although it has not written all its bytes, for this reason.
    case cancel(reason: String)
    /// The sender reads no more, for this reason.
    case stop(reason: String)
    /// The stream is over in both directions, and the side that opened it may open another in its place.
    case release

    private enum Kind: UInt8 {
        case open = 0
        case credit = 1
        case finish = 2
        case cancel = 3
        case stop = 4
        case release = 5
        case openFor = 6
    }

    /// Returns the payload of the frame that says this about stream `number`.
    func payload(for number: UInt32) -> [UInt8] {
        var writer = FieldWriter()
        write(for: number, to: &writer)
        return writer.bytes
    }

    /// Writes the payload of the frame that says this about stream `number`.
    func write(for number: UInt32, to writer: inout FieldWriter) {
        writer.write(number)
        switch self {
        case .open(let name, .program):
            writer.write(Kind.open.rawValue)
            writer.write(short: name)
        case .open(let name, let purpose):
            writer.write(Kind.openFor.rawValue)
            writer.write(purpose.rawValue)
            writer.write(short: name)
        case .credit(let bytes):
            writer.write(Kind.credit.rawValue)
            writer.write(bytes)
        case .finish: writer.write(Kind.finish.rawValue)
        case .cancel(let reason):
            writer.write(Kind.cancel.rawValue)
            writer.write(short: reason)
        case .stop(let reason):
            writer.write(Kind.stop.rawValue)
            writer.write(short: reason)
        case .release: writer.write(Kind.release.rawValue)
        }
    }
}

/// A `stream-control` frame: the number of the stream, and the content.
package struct StreamControlFrame: Equatable {
    package let number: UInt32
    package let control: StreamControl

    /// Reads the payload of a frame.
    init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        number = try reader.number(UInt32.self, "a stream's number")
        control = try StreamControl(reading: &reader)
        try reader.finish("a stream's control frame")
    }
}

extension StreamControl {
    fileprivate init(reading reader: inout FieldReader) throws(WireError) {
        let number = try reader.number(UInt8.self, "what a control frame says of its stream")
        switch Kind(rawValue: number) {
        case .open: self = .open(name: try Self.name(reading: &reader))
        case .openFor:
            let purpose = try reader.number(UInt8.self, "what a stream is for")
            guard let known = StreamPurpose(rawValue: purpose), known != .program else {
                throw .malformed("a stream for the purpose \(purpose)")
            }
            self = .open(name: try Self.name(reading: &reader), for: known)
        case .credit: self = .credit(try reader.number(UInt64.self, "a stream's credit"))
        case .finish: self = .finish
        case .cancel: self = .cancel(reason: try reader.displayText("why a stream was cancelled"))
        case .stop: self = .stop(reason: try reader.displayText("why a stream was stopped"))
        case .release: self = .release
        case nil: throw .malformed("a control frame of the unknown kind \(number)")
        }
    }

    private static func name(reading reader: inout FieldReader) throws(WireError) -> String {
        let name = try reader.shortText("a stream's name")
        guard isName(name) else { throw .malformed("a stream's name has control characters") }
        return name
    }

    /// Returns whether a stream can have this name: at most 255 bytes, without control characters.
    package static func isName(_ name: String) -> Bool {
        name.utf8.count <= Int(UInt8.max)
            && !name.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

/// A `stream-data` frame: the number of the stream, and then its next bytes.
enum StreamData {
    /// The length of the number in front of the bytes.
    static let numberLength = 4

    /// Reads the number of the stream. The bytes behind it must not be missing.
    static func number(of payload: UnsafeRawBufferPointer) throws(WireError) -> UInt32 {
        guard payload.count > numberLength else { throw .malformed("a stream's frame without bytes") }
        return UInt32(bigEndian: payload.loadUnaligned(as: UInt32.self))
    }
}
