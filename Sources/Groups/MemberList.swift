/// The members of a group, sorted on demand.
///
/// A change takes constant time, and only the first read after changes sorts. So a host does not sort a thousand lists
/// when a thousand guests come.
struct MemberList<Member: Hashable & Comparable> {
    private var members: Set<Member> = []
    /// The members in order; nil if they have changed since the last read.
    private var ordered: [Member]? = []

    mutating func insert(_ member: Member) {
        if members.insert(member).inserted { ordered = nil }
    }

    mutating func remove(_ member: Member) {
        if members.remove(member) != nil { ordered = nil }
    }

    /// Returns the members in order.
    mutating func sorted() -> [Member] {
        if let ordered { return ordered }
        let sorted = members.sorted()
        ordered = sorted
        return sorted
    }
}
