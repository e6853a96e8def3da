/// The bytes between ESC [ and the last character of a terminal's sequence.
struct ControlSequence: Sendable {
    private var bytes: [UInt8] = []
    private(set) var isEmpty = true

    /// The length of the longest known sequence.
    private static let longest = 24

    mutating func append(_ byte: UInt8) {
        isEmpty = false
        // One byte more than the longest is kept, so that a longer sequence is not taken for a shorter one.
        if bytes.count <= Self.longest { bytes.append(byte) }
    }

    /// The numbers between semicolons, or nil if there is anything else.
    var numbers: [Int]? { bytes.count > Self.longest ? nil : Self.numbers(in: bytes[...]) }

    private static func numbers(in bytes: ArraySlice<UInt8>) -> [Int]? {
        var numbers: [Int] = []
        for part in bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false) {
            if part.isEmpty {
                numbers.append(1)
            } else {
                guard part.count <= 6, part.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
                    return nil
                }
                numbers.append(part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
            }
        }
        return numbers
    }

    /// Returns the meaning of the whole sequence, or nil if it is not known.
    func input(endingWith last: UInt8) -> Input? {
        if bytes.first == UInt8(ascii: "<"), bytes.count <= Self.longest {
            return mouse(isRelease: last == UInt8(ascii: "m"), last)
        }
        guard let numbers else { return nil }
        if last == UInt8(ascii: "~") {
            return isEmpty ? nil : numbers.first.flatMap(Self.numberedKey).map(Input.key)
        }
        if isEmpty, last == UInt8(ascii: "I") { return .focus(true) }
        if isEmpty, last == UInt8(ascii: "O") { return .focus(false) }
        // With modifiers, arrow keys have two numbers; the first one is 1.
        guard numbers.first ?? 1 == 1, last != UInt8(ascii: "M") else { return nil }
        return last == UInt8(ascii: "Z") ? .key(.backTab) : Self.singleShiftKey(last).map(Input.key)
    }

    private func mouse(isRelease: Bool, _ last: UInt8) -> Input? {
        guard isRelease || last == UInt8(ascii: "M"), let numbers = Self.numbers(in: bytes.dropFirst()),
            numbers.count == 3
        else { return nil }
        return MouseInput(code: numbers[0], column: numbers[1], row: numbers[2], isRelease: isRelease)
            .map(Input.mouse)
    }

    private static func numberedKey(_ number: Int) -> Input.Key? {
        switch number {
        case 1, 7: .home
        case 2: .insert
        case 3: .delete
        case 4, 8: .end
        case 5: .pageUp
        case 6: .pageDown
        case 11...15: .function(number - 10)
        case 17...21: .function(number - 11)
        case 23, 24: .function(number - 12)
        default: nil
        }
    }

    /// Returns the key of a letter after ESC O, or at the end of a sequence.
    static func singleShiftKey(_ letter: UInt8) -> Input.Key? {
        switch letter {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        case UInt8(ascii: "F"): .end
        case UInt8(ascii: "H"): .home
        case UInt8(ascii: "M"): .enter
        case UInt8(ascii: "P")...UInt8(ascii: "S"): .function(Int(letter - UInt8(ascii: "P")) + 1)
        default: nil
        }
    }
}
