/// Decodes the bytes of a terminal into the user's actions.
///
/// A value without I/O. The bytes may come in pieces of any size. A sequence that the decoder does not know is skipped
/// as a whole. No input makes the decoder keep more than ``longestPaste`` bytes.
public struct KeyDecoder: Sendable {
    /// The most bytes of a paste. The rest of a longer one is left out.
    public static let longestPaste = 4_096

    private enum State {
        case ground
        /// After ESC: the key itself, or the beginning of a sequence.
        case escape
        /// After ESC [.
        case control(ControlSequence)
        /// After ESC [ [, as the Linux console sends its function keys.
        case consoleKey
        /// After ESC [ M: the mouse report of the oldest terminals; this many of its bytes are missing.
        case oldMouse(Int)
        /// After ESC O.
        case singleShift(ControlSequence)
        /// In a string sequence, which began with this character after ESC. Terminals send one only on request, and
        /// nothing here requests one.
        case string(Unicode.Scalar, isEmpty: Bool)
        /// After ESC in a string sequence.
        case stringEscape
        /// In a paste, after this many bytes of its end mark.
        case paste(matched: Int)
    }

    private var state = State.ground
    private var text = UTF8Reader()
    private var pasted: [UInt8] = []
    private var inputs: [Input] = []

    private static let pasteEnd = Array("\u{1B}[201~".utf8)

    /// Creates a decoder without any input yet.
    public init() {}

    /// Whether the last bytes mean one thing if nothing follows for some milliseconds, and another if something
    /// follows. If nothing follows, call ``flush()``.
    public var isUndecided: Bool {
        switch state {
        case .escape, .string(_, isEmpty: true), .stringEscape: true
        default: false
        }
    }

    /// Decodes these bytes, and returns the complete actions.
    public mutating func feed(_ bytes: some Sequence<UInt8>) -> [Input] {
        for byte in bytes { decode(byte) }
        return takeInputs()
    }

    /// Returns the meaning of the last bytes, because nothing has followed for a while: a lone ESC was the key.
    public mutating func flush() -> [Input] {
        switch state {
        case .escape:
            inputs.append(.key(.escape))
            state = .ground
        case .string(let first, isEmpty: true):
            inputs.append(.alternate(first))
            state = .ground
        case .stringEscape:
            inputs.append(.key(.escape))
            state = .ground
        default: break
        }
        return takeInputs()
    }

    private mutating func takeInputs() -> [Input] {
        defer { inputs = [] }
        return inputs
    }

    private mutating func decode(_ byte: UInt8) {
        switch state {
        case .ground: decodeText(byte)
        case .escape: decodeAfterEscape(byte)
        case .control(let sequence): decodeControlSequence(byte, sequence)
        case .singleShift(let sequence): decodeSingleShift(byte, sequence)
        case .consoleKey: decodeConsoleKey(byte)
        case .oldMouse(let count): state = count > 1 ? .oldMouse(count - 1) : .ground
        case .string: decodeString(byte)
        case .stringEscape:
            // ESC \ ends the string; any other ESC begins something new.
            state = .escape
            if byte == UInt8(ascii: "\\") { state = .ground } else { decodeAfterEscape(byte) }
        case .paste(let matched): decodePaste(byte, matched)
        }
    }

    // MARK: Text and keys

    private mutating func decodeText(_ byte: UInt8) {
        var scalars: [Unicode.Scalar] = []
        text.decode(byte) { scalars.append($0) }
        for scalar in scalars {
            switch scalar.value {
            case 0x00...0x1F, 0x7F: decodeControlCharacter(UInt8(scalar.value))
            case 0x80...0x9F: break
            default: inputs.append(.character(scalar))
            }
        }
    }

    private mutating func decodeControlCharacter(_ byte: UInt8) {
        switch byte {
        case 0x1B: state = .escape
        case 0x09: inputs.append(.key(.tab))
        case 0x0A, 0x0D: inputs.append(.key(.enter))
        case 0x08, 0x7F: inputs.append(.key(.backspace))
        case 0x01...0x1A: inputs.append(.control(Unicode.Scalar(byte + 0x60)))
        default: inputs.append(.control(Unicode.Scalar(byte + 0x40)))
        }
    }

    private mutating func decodeAfterEscape(_ byte: UInt8) {
        state = .ground
        switch byte {
        case UInt8(ascii: "["): state = .control(ControlSequence())
        case UInt8(ascii: "O"): state = .singleShift(ControlSequence())
        case UInt8(ascii: "]"), UInt8(ascii: "P"), UInt8(ascii: "X"), UInt8(ascii: "^"), UInt8(ascii: "_"):
            state = .string(Unicode.Scalar(byte), isEmpty: true)
        case 0x20...0x7E: inputs.append(.alternate(Unicode.Scalar(byte)))
        default:
            inputs.append(.key(.escape))
            decodeText(byte)
        }
    }

    // MARK: Sequences

    private mutating func decodeControlSequence(_ byte: UInt8, _ sequence: ControlSequence) {
        var sequence = sequence
        switch byte {
        case 0x20...0x3F:
            sequence.append(byte)
            state = .control(sequence)
        case UInt8(ascii: "[") where sequence.isEmpty: state = .consoleKey
        case UInt8(ascii: "M") where sequence.isEmpty: state = .oldMouse(3)
        case 0x40...0x7E:
            state = .ground
            if byte == UInt8(ascii: "~"), sequence.numbers == [200] {
                state = .paste(matched: 0)
            } else if let input = sequence.input(endingWith: byte) {
                inputs.append(input)
            }
        default: leaveSequence(for: byte)
        }
    }

    private mutating func decodeSingleShift(_ byte: UInt8, _ sequence: ControlSequence) {
        switch byte {
        // Some terminals send the modifiers here.
        case 0x30...0x3F:
            var sequence = sequence
            sequence.append(byte)
            state = .singleShift(sequence)
        case 0x20...0x7E:
            state = .ground
            if let key = ControlSequence.singleShiftKey(byte) { inputs.append(.key(key)) }
        default: leaveSequence(for: byte)
        }
    }

    private mutating func decodeConsoleKey(_ byte: UInt8) {
        state = .ground
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "E"):
            inputs.append(.key(.function(Int(byte - UInt8(ascii: "A")) + 1)))
        case 0x20...0x7E: break
        default: leaveSequence(for: byte)
        }
    }

    private mutating func decodeString(_ byte: UInt8) {
        switch byte {
        case 0x1B: state = .stringEscape
        case 0x07: state = .ground
        case 0x00...0x1F: leaveSequence(for: byte)
        default: state = .string("]", isEmpty: false)
        }
    }

    /// Ends the sequence at a byte that cannot belong to it, and decodes that byte by itself. So Ctrl-C always works.
    private mutating func leaveSequence(for byte: UInt8) {
        state = .ground
        // These two bytes only say that a sequence is over.
        if byte != 0x18, byte != 0x1A { decodeText(byte) }
    }

    // MARK: Pasting

    private mutating func decodePaste(_ byte: UInt8, _ matched: Int) {
        let end = Self.pasteEnd
        if byte == end[matched] {
            state = .paste(matched: matched + 1)
            guard matched + 1 == end.count else { return }
            inputs.append(.paste(String(decoding: pasted, as: UTF8.self)))
            pasted = []
            state = .ground
            return
        }
        appendToPaste(end.prefix(matched))
        state = .paste(matched: byte == end[0] ? 1 : 0)
        if byte != end[0] { appendToPaste([byte]) }
    }

    private mutating func appendToPaste(_ bytes: some Collection<UInt8>) {
        pasted += bytes.prefix(Self.longestPaste - pasted.count)
    }
}
