/// Puts all changes of a run into the sources at once, each switched on by its number. An operator is replaced by one
/// of the same precedence that chooses between the two, a value is passed through a function, a statement is put behind
/// an `if`.
enum Schema {
    /// The environment variable with the number of the mutant to switch on. The mutated program reads it once.
    static let variable = "NIGH_MUTANT"

    static let truth = "mutantTruth"
    static let more = "mutantMore"
    static let less = "mutantLess"
    static let off = "mutantIsOff"
    static func extreme(_ name: String) -> String { name == "min" ? "mutantMin" : "mutantMax" }

    /// The replacement of each operator.
    static let replacements: [String: String] = [
        "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "===",
        "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "+", "&+": "&-", "&-": "&+", "&*": "&+",
        "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=", "&+=": "&-=", "&-=": "&+=",
    ]

    private static let digits = Array("←↑→↓↔↕↖↗↘↙")

    /// The operator for the place `number`. Each place has its own, so that the operator knows its place.
    static func name(_ number: Int) -> String {
        "⇄" + String("\(number)".compactMap { $0.wholeNumberValue.map { digits[$0] } })
    }

    /// The file that goes with the mutated sources. Its places are numbered from 1.
    static func support(for sites: [(number: Int, site: Site)]) -> String {
        let parts = sites.compactMap { declaration(of: $0.site.kind, number: $0.number) }
        return common + parts.joined(separator: "\n")
    }

    private static let common = """
        import Glibc

        @usableFromInline nonisolated(unsafe) var mutantInUse = -1

        @usableFromInline @inline(__always) func mutantIsOn(_ number: Int) -> Bool {
            if mutantInUse < 0 { mutantInUse = getenv("\(variable)").map { Int(atoi($0)) } ?? 0 }
            return mutantInUse == number
        }

        @usableFromInline @inline(__always) func \(off)(_ number: Int) -> Bool { !mutantIsOn(number) }

        @usableFromInline @inline(__always) func \(truth)(_ number: Int, _ value: Bool) -> Bool {
            mutantIsOn(number) ? !value : value
        }

        @usableFromInline @inline(__always) func \(more)<T: Numeric>(_ number: Int, _ value: T) -> T {
            mutantIsOn(number) ? value + 1 : value
        }

        @usableFromInline @inline(__always) func \(less)<T: Numeric>(_ number: Int, _ value: T) -> T {
            mutantIsOn(number) ? value - 1 : value
        }

        @usableFromInline @inline(__always)
        func mutantMin<T: Comparable>(_ number: Int, _ one: T, _ other: T) -> T {
            mutantIsOn(number) ? max(one, other) : min(one, other)
        }

        @usableFromInline @inline(__always)
        func mutantMin<T: Comparable>(_ number: Int, _ one: T, _ other: T, _ third: T) -> T {
            mutantIsOn(number) ? max(one, other, third) : min(one, other, third)
        }

        @usableFromInline @inline(__always)
        func mutantMax<T: Comparable>(_ number: Int, _ one: T, _ other: T) -> T {
            mutantIsOn(number) ? min(one, other) : max(one, other)
        }

        extension Moment {
            static func - (moment: Moment, span: Span) -> Moment {
                moment + Span(nanoseconds: 0 &- span.nanoseconds)
            }
        }


        """

    private static let precedences: [(group: String, operators: Set<String>)] = [
        ("ComparisonPrecedence", ["<", "<=", ">", ">=", "==", "!=", "===", "!=="]),
        ("LogicalConjunctionPrecedence", ["&&"]), ("LogicalDisjunctionPrecedence", ["||"]),
        ("AdditionPrecedence", ["+", "-", "&+", "&-"]), ("MultiplicationPrecedence", ["*", "&*"]),
        ("BitwiseShiftPrecedence", ["<<", ">>"]), ("AssignmentPrecedence", ["+=", "-=", "&+=", "&-="]),
    ]

    private static func declaration(of kind: Site.Kind, number: Int) -> String? {
        let name = name(number)
        switch kind {
        case .not:
            return """
                prefix operator \(name)
                @usableFromInline @inline(__always) prefix func \(name)(_ value: Bool) -> Bool {
                    mutantIsOn(\(number)) ? value : !value
                }

                """
        case .infix(let one, let other):
            guard let group = precedences.first(where: { $0.operators.contains(one) })?.group else {
                return nil
            }
            return "infix operator \(name): \(group)\n"
                + signatures(of: one).map { signature in
                    "@usableFromInline @inline(__always) func \(name)\(signature.head) {\n"
                        + "    \(signature.body(one, other, number))\n}\n"
                }.joined()
        case .integer, .truth, .extreme, .statement: return nil
        }
    }

    private struct Signature {
        let head: String
        let body: (String, String, Int) -> String

        static func choosing(_ head: String) -> Signature {
            Signature(head: head) { "mutantIsOn(\($2)) ? left \($1) right : left \($0) right" }
        }
    }

    private static func signatures(of name: String) -> [Signature] {
        switch name {
        case "<", "<=", ">", ">=": return [.choosing("<T: Comparable>(_ left: T, _ right: T) -> Bool")]
        case "==", "!=": return [.choosing("<T: Equatable>(_ left: T, _ right: T) -> Bool")]
        case "===", "!==": return [.choosing("(_ left: AnyObject?, _ right: AnyObject?) -> Bool")]
        case "&&", "||":
            return [
                Signature(
                    head:
                        "<E: Error>(_ left: Bool, _ right: @autoclosure () throws(E) -> Bool) throws(E) -> Bool"
                ) {
                    let (plain, changed) =
                        $0 == "&&"
                        ? ("left ? try right() : false", "left ? true : try right()")
                        : ("left ? true : try right()", "left ? try right() : false")
                    return "if mutantIsOn(\($2)) { return \(changed) }\n    return \(plain)"
                }
            ]
        case "+":
            return [
                number("AdditiveArithmetic"), .choosing("(_ left: Moment, _ right: Moment.Span) -> Moment"),
            ]
        case "-":
            let difference = Signature(head: "(_ left: Moment, _ right: Moment) -> Moment.Span") {
                "mutantIsOn(\($2)) ? Moment.Span(nanoseconds: left.nanoseconds &+ right.nanoseconds) : left \($0) right"
            }
            return [number("AdditiveArithmetic"), difference]
        case "*": return [number("Numeric")]
        case "&+", "&-", "&*": return [number("FixedWidthInteger")]
        case "<<", ">>":
            return [.choosing("<T: BinaryInteger, C: BinaryInteger>(_ left: T, _ right: C) -> T")]
        default:
            let numbers = name.hasPrefix("&") ? "FixedWidthInteger" : "AdditiveArithmetic"
            return [
                Signature(head: "<T: \(numbers)>(_ left: inout T, _ right: T)") {
                    "if mutantIsOn(\($2)) { left \($1) right } else { left \($0) right }"
                }
            ]
        }
    }

    private static func number(_ kind: String) -> Signature {
        .choosing("<T: \(kind)>(_ left: T, _ right: T) -> T")
    }

    /// Returns `source` with all edits applied.
    static func applying(_ edits: [Site.Edit], to source: [UInt8]) -> [UInt8] {
        // At one position, closing edits come first, the inner before the outer; then opening ones, the outer before
        // the inner.
        let ordered = edits.enumerated().sorted { left, right in
            let (one, other) = (left.element, right.element)
            if one.bytes.lowerBound != other.bytes.lowerBound {
                return one.bytes.lowerBound < other.bytes.lowerBound
            }
            if one.closes != other.closes { return one.closes }
            if one.reach != other.reach { return one.closes == (one.reach < other.reach) }
            return one.closes ? left.offset > right.offset : left.offset < right.offset
        }
        var result: [UInt8] = []
        var position = 0
        for (_, edit) in ordered {
            result += source[position..<edit.bytes.lowerBound]
            result += Array(edit.text.utf8)
            position = edit.bytes.upperBound
        }
        return result + source[position...]
    }
}

extension Site.Edit {
    /// Whether the edit ends something that is enclosed.
    fileprivate var closes: Bool { bytes.isEmpty && (text == ")" || text == " }") }
}
