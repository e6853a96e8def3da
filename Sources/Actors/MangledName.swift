/// The runtime's name for a type, or for a method without the type that declares it: the method's name, its labels and
/// its types.
///
/// In such names Swift abbreviates words that have come before, also in the type in front. (The page "Mangling" of the
/// Swift ABI describes this under "Identifiers".) Spelled out, a method's name means the same behind any type.
struct MangledName {
    fileprivate enum Piece {
        case identifier(ArraySlice<UInt8>)
        /// Types and modules that have come before in the name, by their numbers.
        case references([Int])
        /// Operators, and identifiers that are not ASCII, which have no words.
        case other(ArraySlice<UInt8>)
    }

    private var pieces: [Piece] = []

    /// The bytes of the longest name that is read.
    private static let longest = 2_048

    /// Reads a name. Returns nil if it is none.
    ///
    /// - Parameter type: the runtime's name for the type in front; empty if there is none, or if words are spelled out.
    init?(_ text: some StringProtocol, behind type: String = "") {
        guard text.utf8.count <= Self.longest, text.utf8.allSatisfy(Self.isOfName) else { return nil }
        var reader = Reader(bytes: ArraySlice(text.utf8), words: Words(of: type))
        while !reader.bytes.isEmpty {
            guard let piece = reader.next() else { return nil }
            pieces.append(piece)
        }
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
    }

    /// Whether the first identifier is no type's: behind that there is the kind of the type.
    var beginsAsMethod: Bool {
        guard pieces.count > 1 else { return false }
        switch pieces[0] {
        case .identifier: break
        // One that is not ASCII.
        case .other(let text): if text.first != UInt8(ascii: "0") { return false }
        case .references: return false
        }
        if case .other(let text) = pieces[1] { return !"CVOPa".utf8.contains(text.first ?? 0) }
        return true
    }

    /// The name with all words spelled out.
    var spelledOut: String { text { Array("\($0.count)".utf8) + $0 } }

    private func text(_ identifier: (ArraySlice<UInt8>) -> [UInt8]) -> String {
        var bytes: [UInt8] = []
        var references: [Int] = []
        // References that follow each other are written together.
        func endReferences() {
            bytes += Self.bytes(of: references)
            references = []
        }
        for piece in pieces {
            switch piece {
            case .references(let numbers): references += numbers
            case .identifier(let text):
                endReferences()
                bytes += identifier(text)
            case .other(let text):
                endReferences()
                bytes += text
            }
        }
        endReferences()
        return String(decoding: bytes, as: UTF8.self)
    }

    /// An A, and a letter for each number, the last one a capital. Equal ones in a row have their count in front.
    private static func bytes(of references: [Int]) -> [UInt8] {
        guard !references.isEmpty else { return [] }
        var bytes = [UInt8(ascii: "A")]
        var rest = references[...]
        while let number = rest.first {
            let count = rest.prefix { $0 == number }.count
            rest = rest.dropFirst(count)
            if count > 1 { bytes += "\(count)".utf8 }
            bytes.append(UInt8(ascii: rest.isEmpty ? "A" : "a") + UInt8(number))
        }
        return bytes
    }

    /// The names that the same method may have behind another type of the module. That may lie in others, which shifts
    /// the numbers of types. And the type in front, called `name`, is spelled out there where it occurs first, and
    /// numbered after that.
    func moved(fromType name: String) -> [MangledName] {
        let uses = pieces.reduce(0) { $0 + $1.references(to: Self.typeInFront) }
        let numbers = uses > 1 ? Self.typeInFront + 1..<Self.mostReferences : 0..<1
        let shifts = 0...(uses > 0 ? Self.mostShift : 0)
        return (0...Self.mostShift).flatMap { nesting in
            numbers.flatMap { number in
                shifts.compactMap { shift in
                    moved(fromType: name, numbered: number, nesting: nesting, shift: shift)
                }
            }
        }
    }

    /// - Parameters:
    ///   - number: the number by which later references go to the type in front.
    ///   - nesting: how much greater the numbers of types become because the other type lies in others.
    ///   - shift: how much greater they become behind the first reference to the type in front.
    private func moved(
        fromType name: String, numbered number: Int, nesting: Int, shift: Int
    ) -> MangledName? {
        var moved = self
        moved.pieces = []
        var hasOccurred = false
        for piece in pieces {
            guard case .references(let references) = piece else {
                moved.pieces.append(piece)
                continue
            }
            for reference in references {
                if reference != Self.typeInFront {
                    let isOfMethod = reference > Self.typeInFront
                    let new = isOfMethod ? reference + nesting + (hasOccurred ? shift : 0) : reference
                    guard new < Self.mostReferences else { return nil }
                    moved.pieces.append(.references([new]))
                } else if hasOccurred {
                    moved.pieces.append(.references([number]))
                } else {
                    hasOccurred = true
                    moved.pieces += [
                        .references([0]), .identifier(ArraySlice(name.utf8)), .other(ArraySlice("C".utf8)),
                    ]
                }
            }
        }
        return moved
    }

    /// The number by which names refer to the type in front.
    private static let typeInFront = 2
    /// How much greater numbers become at most, for either reason.
    private static let mostShift = 8
    /// The number of types and modules that have a letter.
    private static let mostReferences = 26

    /// The name as the runtime has it behind a type, or in front of everything.
    func abbreviated(behind type: String = "") -> String {
        var words = Words(of: type)
        return text { words.abbreviate($0) }
    }

    /// The words that have come so far in a name. Later identifiers refer to the first 26.
    private struct Words {
        private(set) var words: [ArraySlice<UInt8>] = []
        private static let most = 26

        /// The words of a type's name.
        init(of type: String) {
            guard !type.isEmpty else { return }
            // Behind "$s".
            var reader = Reader(bytes: ArraySlice(type.utf8.dropFirst(2)), words: self)
            while !reader.bytes.isEmpty, reader.next() != nil {}
            words = reader.words.words
        }

        /// Where the words of an identifier are. A word ends in front of an underscore, and of a capital letter behind
        /// another character.
        private static func ranges(in text: ArraySlice<UInt8>) -> [Range<Int>] {
            var ranges: [Range<Int>] = []
            var start: Int?
            for index in text.indices.lowerBound...text.indices.upperBound {
                let byte = index < text.endIndex ? text[index] : 0
                if let begin = start {
                    let isCapital = byte.isCapital && !text[index - 1].isCapital
                    guard byte == 0 || byte == UInt8(ascii: "_") || isCapital else { continue }
                    ranges.append(begin..<index)
                    start = nil
                }
                if byte != 0, byte != UInt8(ascii: "_"), !byte.isDigit { start = index }
            }
            return ranges
        }

        /// Remembers the words of an identifier, or of a part that is spelled out.
        mutating func add(of text: ArraySlice<UInt8>) {
            for range in Self.ranges(in: text) where range.count >= 2 && words.count < Self.most {
                words.append(text[range])
            }
        }

        /// An identifier as it stands in a name. Remembers its words.
        mutating func abbreviate(_ text: ArraySlice<UInt8>) -> [UInt8] {
            var known: [(range: Range<Int>, word: Int)] = []
            for range in Self.ranges(in: text) {
                if let word = words.firstIndex(of: text[range]) {
                    known.append((range, word))
                } else if range.count >= 2, words.count < Self.most {
                    words.append(text[range])
                }
            }
            guard let last = known.last else { return Array("\(text.count)".utf8) + text }
            var bytes: [UInt8] = [UInt8(ascii: "0")]
            var position = text.startIndex
            for (range, word) in known {
                if position < range.lowerBound {
                    bytes += "\(range.lowerBound - position)".utf8
                    bytes += text[position..<range.lowerBound]
                }
                let isLast = range == last.range
                bytes.append(UInt8(ascii: isLast ? "A" : "a") + UInt8(word))
                position = range.upperBound
            }
            // The end of an identifier that ends with a word.
            if position == text.endIndex { return bytes + [UInt8(ascii: "0")] }
            return bytes + Array("\(text.endIndex - position)".utf8) + text[position...]
        }
    }

    /// Reads the pieces of a name.
    private struct Reader {
        var bytes: ArraySlice<UInt8>
        var words: Words

        /// The next piece; nil if the name is none.
        mutating func next() -> Piece? {
            let start = bytes
            guard let first = bytes.popFirst() else { return nil }
            switch first {
            case UInt8(ascii: "0"):
                if bytes.first == UInt8(ascii: "0") {
                    bytes.removeFirst()
                    guard let count = number() else { return nil }
                    if bytes.first == UInt8(ascii: "_") { bytes.removeFirst() }
                    guard count <= bytes.count else { return nil }
                    bytes.removeFirst(count)
                    return .other(start[..<bytes.startIndex])
                }
                return abbreviated().map { .identifier($0) }
            case UInt8(ascii: "1")...UInt8(ascii: "9"):
                bytes = start
                guard let text = literal() else { return nil }
                words.add(of: text)
                return .identifier(text)
            case UInt8(ascii: "S"):
                // A type of the standard library, or several times the same one.
                while let byte = bytes.popFirst() {
                    if byte.isDigit { continue }
                    if byte == UInt8(ascii: "c") { _ = bytes.popFirst() }
                    break
                }
            case UInt8(ascii: "A"):
                return references()
            default: break
            }
            return .other(start[..<bytes.startIndex])
        }

        private mutating func number() -> Int? {
            let digits = bytes.prefix(while: \.isDigit)
            bytes = bytes.dropFirst(digits.count)
            return Int(String(decoding: digits, as: UTF8.self))
        }

        private mutating func references() -> Piece? {
            var references: [Int] = []
            while true {
                let count = bytes.first?.isDigit == true ? number() : 1
                guard let count, count > 0, count <= MangledName.longest, let letter = bytes.popFirst(),
                    letter.isLetter
                else { return nil }
                let number = Int(letter) - Int(UInt8(ascii: letter.isCapital ? "A" : "a"))
                references += Array(repeating: number, count: count)
                guard references.count <= MangledName.longest else { return nil }
                if letter.isCapital { return .references(references) }
            }
        }

        private mutating func literal() -> ArraySlice<UInt8>? {
            guard let count = number(), count > 0, count <= bytes.count else { return nil }
            defer { bytes.removeFirst(count) }
            return bytes.prefix(count)
        }

        /// The rest of an identifier with abbreviated words.
        private mutating func abbreviated() -> ArraySlice<UInt8>? {
            var text: [UInt8] = []
            var hasMore = true
            while hasMore {
                while hasMore, let letter = bytes.first, letter.isLetter {
                    bytes.removeFirst()
                    hasMore = !letter.isCapital
                    let index = Int(letter) - Int(UInt8(ascii: hasMore ? "a" : "A"))
                    guard index < words.words.count else { return nil }
                    text += words.words[index]
                }
                if bytes.first == UInt8(ascii: "0") {
                    bytes.removeFirst()
                    return text[...]
                }
                guard let part = literal() else { return nil }
                words.add(of: part)
                text += part
            }
            return text[...]
        }
    }
}

extension MangledName.Piece {
    fileprivate func references(to number: Int) -> Int {
        if case .references(let numbers) = self { numbers.count { $0 == number } } else { 0 }
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
    fileprivate var isCapital: Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
    fileprivate var isLetter: Bool {
        isCapital || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self)
    }
}
