import CSystemBus

/// A value received in a D-Bus message, as far as it is needed here: all integer types are one, and a variant is its
/// content.
enum BusValue: Hashable {
    case boolean(Bool)
    case integer(Int64)
    /// A string, a path or a signature.
    case text(String)
    case list([BusValue])
    /// A dictionary whose keys are text.
    case entries([String: BusValue])
    /// Anything else, which is skipped.
    case other

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    var list: [BusValue]? { if case .list(let values) = self { values } else { nil } }
    var entries: [String: BusValue]? { if case .entries(let entries) = self { entries } else { nil } }

    /// Reads all values of a message. If one cannot be read, that one and those after it are missing.
    static func all(in message: OpaquePointer) -> [BusValue] {
        var values: [BusValue] = []
        while let value = next(in: message) { values.append(value) }
        return values
    }

    /// Reads the next value; nil at the end of the message or of the container that was entered.
    private static func next(in message: OpaquePointer) -> BusValue? {
        var type: CChar = 0
        var contents: UnsafePointer<CChar>?
        guard sd_bus_message_peek_type(message, &type, &contents) > 0 else { return nil }
        switch Character(UnicodeScalar(UInt8(bitPattern: type))) {
        case "b": return number(in: message, type, as: Int32.self).map { .boolean($0 != 0) }
        case "y": return number(in: message, type, as: UInt8.self).map { .integer(Int64($0)) }
        case "n": return number(in: message, type, as: Int16.self).map { .integer(Int64($0)) }
        case "q": return number(in: message, type, as: UInt16.self).map { .integer(Int64($0)) }
        case "i": return number(in: message, type, as: Int32.self).map { .integer(Int64($0)) }
        case "u": return number(in: message, type, as: UInt32.self).map { .integer(Int64($0)) }
        case "x": return number(in: message, type, as: Int64.self).map { .integer($0) }
        case "s", "o", "g": return text(in: message, type)
        case "v": return inside(message, type, contents) { next(in: message) ?? .other }
        case "a" where contents.map(holdsText) == true: return entries(in: message, contents)
        case "a" where contents?.pointee != CChar(UInt8(ascii: "{")), "r", "(":
            return inside(message, type, contents) { .list(all(in: message)) }
        default: return sd_bus_message_skip(message, nil) >= 0 ? .other : nil
        }
    }

    private static func number<Number: FixedWidthInteger>(
        in message: OpaquePointer, _ type: CChar, as _: Number.Type
    ) -> Number? {
        var number = Number.zero
        return sd_bus_message_read_basic(message, type, &number) > 0 ? number : nil
    }

    private static func text(in message: OpaquePointer, _ type: CChar) -> BusValue? {
        var text: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(message, type, &text) > 0, let text else { return nil }
        return .text(String(cString: text))
    }

    /// Whether an array holds dictionary entries whose keys are text.
    private static func holdsText(_ contents: UnsafePointer<CChar>) -> Bool {
        contents[0] == CChar(UInt8(ascii: "{")) && "sog".utf8.contains { CChar($0) == contents[1] }
    }

    private static func entries(in message: OpaquePointer, _ contents: UnsafePointer<CChar>?) -> BusValue? {
        inside(message, CChar(UInt8(ascii: "a")), contents) {
            var entries: [String: BusValue] = [:]
            while sd_bus_message_enter_container(message, CChar(UInt8(ascii: "e")), nil) > 0 {
                if let key = next(in: message)?.text { entries[key] = next(in: message) ?? .other }
                guard sd_bus_message_exit_container(message) >= 0 else { break }
            }
            return .entries(entries)
        }
    }

    private static func inside(
        _ message: OpaquePointer, _ type: CChar, _ contents: UnsafePointer<CChar>?, _ read: () -> BusValue
    ) -> BusValue? {
        guard sd_bus_message_enter_container(message, type, contents) > 0 else { return nil }
        let value = read()
        return sd_bus_message_exit_container(message) >= 0 ? value : nil
    }
}

/// A value to send in a D-Bus message.
enum BusArgument {
    case text(String)
    case path(String)
    case boolean(Bool)
    case number16(UInt16)
    case number32(UInt32)
    /// A value that is sent with its type.
    case variant([BusArgument])
    /// Named options, each a variant.
    case options([(String, BusArgument)])

    /// Appends the value to `message`.
    func append(to message: OpaquePointer) {
        switch self {
        case .text(let text): _ = text.withCString { sd_bus_message_append_basic(message, type("s"), $0) }
        case .path(let path): _ = path.withCString { sd_bus_message_append_basic(message, type("o"), $0) }
        case .boolean(let value):
            var number: Int32 = value ? 1 : 0
            sd_bus_message_append_basic(message, type("b"), &number)
        case .number16(var number): sd_bus_message_append_basic(message, type("q"), &number)
        case .number32(var number): sd_bus_message_append_basic(message, type("u"), &number)
        case .variant(let values):
            sd_bus_message_open_container(message, type("v"), values.map(\.signature).joined())
            for value in values { value.append(to: message) }
            sd_bus_message_close_container(message)
        case .options(let options):
            sd_bus_message_open_container(message, type("a"), "{sv}")
            for (key, value) in options {
                sd_bus_message_open_container(message, type("e"), "sv")
                BusArgument.text(key).append(to: message)
                BusArgument.variant([value]).append(to: message)
                sd_bus_message_close_container(message)
            }
            sd_bus_message_close_container(message)
        }
    }

    private var signature: String {
        switch self {
        case .text: "s"
        case .path: "o"
        case .boolean: "b"
        case .number16: "q"
        case .number32: "u"
        case .variant: "v"
        case .options: "a{sv}"
        }
    }

    private func type(_ letter: Unicode.Scalar) -> CChar { CChar(letter.value) }
}
