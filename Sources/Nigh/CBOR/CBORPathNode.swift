/// A node of the coding path of a value: its key, and the node of the value around it.
class CBORPathNode {
    private let key: (any CodingKey)?
    private let parent: CBORPathNode?

    init(_ key: (any CodingKey)?, in parent: CBORPathNode?) {
        self.key = key
        self.parent = parent
    }

    final var codingPath: [any CodingKey] {
        let nodes = sequence(first: self, next: \.parent)
        return nodes.compactMap(\.key).reversed()
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
