import NighCore

/// The first bytes of the side that is asked for a connection to one of its ports, before those of the connection.
package enum ForwardingAnswer: Hashable, Sendable {
    /// The connection is open. The side keeps a conversation that no link carries for this time.
    case connected(grace: Duration)
    /// There is no connection, for this reason.
    case refused(ForwardingRefusal)

    /// The length of every answer.
    package static let byteCount = 5

    /// Reads an answer. An unknown code is a failure of the connection.
    package init(reading bytes: UnsafeRawBufferPointer) throws(WireError) {
        var reader = FieldReader(bytes)
        let code = try reader.number(UInt8.self, "the code of an answer")
        let number = try reader.number(UInt32.self, "the number of an answer")
        try reader.finish("the answer for a forwarded connection")
        self =
            switch code {
            case 0: .connected(grace: .seconds(Int64(number)))
            case 1: .refused(.notAllowed)
            case 2: .refused(.notPaired)
            case 3: .refused(.nobodyListens)
            case 4: .refused(.full(Int(number)))
            default: .refused(.failed)
            }
    }

    /// The answer as it is sent.
    package var bytes: [UInt8] {
        let (code, number): (UInt8, UInt32) =
            switch self {
            case .connected(let grace): (0, UInt32(clamping: grace.components.seconds))
            case .refused(.notAllowed): (1, 0)
            case .refused(.notPaired): (2, 0)
            case .refused(.nobodyListens): (3, 0)
            case .refused(.full(let limit)): (4, UInt32(clamping: limit))
            case .refused(.failed): (5, 0)
            }
        var writer = FieldWriter()
        writer.write(code)
        writer.write(number)
        return writer.bytes
    }
}

/// Reads the answer at the beginning of a stream, whose bytes come in pieces of any size.
package struct ForwardingAnswerReader {
    private var came: [UInt8] = []

    package init() {}

    /// Takes the next bytes of the stream. Returns the answer and the bytes behind it; nil until it is whole.
    package mutating func append(
        _ bytes: ByteSlice
    ) throws(WireError) -> (answer: ForwardingAnswer, rest: ByteSlice)? {
        let count = min(ForwardingAnswer.byteCount - came.count, bytes.count)
        came += bytes[0..<count].bytes
        guard came.count == ForwardingAnswer.byteCount else { return nil }
        let answer = try ByteSlice(came).withUnsafeBytes { bytes throws(WireError) in
            try ForwardingAnswer(reading: bytes)
        }
        return (answer, bytes[count..<bytes.count])
    }
}

/// Why a side does not connect a peer to a port.
package enum ForwardingRefusal: Error, Hashable, Sendable {
    /// The side connects nobody to this port.
    case notAllowed
    /// The side connects only devices with which it is paired.
    case notPaired
    /// No program listens on the port.
    case nobodyListens
    /// The side has as many connections as it keeps at once.
    case full(Int)
    /// The connection fails for another reason.
    case failed

    /// The error at the side that asked, about a peer.
    package func error(port: UInt16, peer: String) -> NighError {
        let (cause, advice): (NighError.Cause, String) =
            switch self {
            case .notAllowed:
                (.declined("it does not expose port \(port)"), "run `nigh expose \(port)` there")
            case .notPaired:
                (.notPaired, "run `nigh pair` on both devices, and compare the digits")
            case .nobodyListens:
                (.refused, "no program listens on port \(port) there: start it, or name its port")
            case .full(let limit):
                (.limit("connections there", limit), "close connections that are not used")
            case .failed:
                (.declined("it cannot connect to its port \(port)"), "see what `nigh expose` says there")
            }
        return NighError(.connecting, cause, peer: peer, advice: advice)
    }
}

/// The port of the device that a peer is asked to connect to, as the name of a stream states it.
package enum ForwardingName {
    /// Returns the port that a name states; nil for any other name.
    package static func port(_ name: String) -> UInt16? {
        guard let port = UInt16(name), port > 0, "\(port)" == name else { return nil }
        return port
    }
}
