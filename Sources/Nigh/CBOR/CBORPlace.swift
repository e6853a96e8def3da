/// The place of a value that is encoded or decoded: its key, and the place of the value around it.
class CBORPlace {
    private let key: (any CodingKey)?
    private let parent: CBORPlace?

    init(_ key: (any CodingKey)?, in parent: CBORPlace?) {
        self.key = key
        self.parent = parent
    }

    final var codingPath: [any CodingKey] {
        let places = sequence(first: self, next: \.parent)
        return places.compactMap(\.key).reversed()
    }
}

/// A key that no type of the program has: an index in an array, the key of a superclass, or one that was received.
enum CBORKey: CodingKey {
    case index(Int)
    case name(String)

    static let `super` = CBORKey.name("super")

    init(intValue: Int) { self = .index(intValue) }

    init(stringValue: String) { self = .name(stringValue) }

    var intValue: Int? { if case .index(let index) = self { index } else { nil } }

    var stringValue: String {
        switch self {
        case .index(let index): "\(index)"
        case .name(let name): name
        }
    }
}
