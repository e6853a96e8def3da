/// The members of a group, in order when somebody asks for them.
///
/// A change costs the same however many members there are, and only the first look after changes sorts. So a host to
/// which a thousand guests come does not sort a thousand lists.
struct MemberList<Member: Hashable & Comparable> {
    private var members: Set<Member> = []
    /// The members in order; nil if they have changed since somebody asked.
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
