/// How a terminal shows a single scalar.
///
/// Texts come from untrusted peers. This type recognises scalars that could control the terminal or reverse the order
/// of reading, so that they never reach the terminal.
enum ScalarWidth {
    /// Takes this many cells of its own.
    case cells(Int)
    /// Is put onto the character before it.
    case mark
    /// Changes how its neighbours look, if there is a font for that. It is left out, because terminals differ in the
    /// cells they give it.
    case joiner
    /// Is shown as a space.
    case blank
    /// Must not reach the terminal.
    case harmful

    init(_ scalar: Unicode.Scalar) {
        let value = scalar.value
        switch value {
        case 0x20...0x7E: self = .cells(1)
        case 0x09, 0x0A, 0x0D: self = .blank
        case 0x1160...0x11FF, 0xD7B0...0xD7FF: self = .mark
        case 0x200C, 0x200D, 0xFE00...0xFE0F, 0xE0020...0xE007F, 0xE0100...0xE01EF: self = .joiner
        default:
            let properties = scalar.properties
            switch properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .surrogate:
                self = .harmful
            case .nonspacingMark, .enclosingMark: self = .mark
            case .spaceSeparator where value != 0x3000: self = .blank
            default:
                // Invisible, but neither a mark nor a format character: fillers of Hangul and similar.
                if properties.isDefaultIgnorableCodePoint {
                    self = .harmful
                } else {
                    self = .cells(Self.isWide(value, properties) ? 2 : 1)
                }
            }
        }
    }

    /// Returns whether the East Asian Width is W or F (Unicode, UAX #11). Outside of these blocks only emoji are wide.
    private static func isWide(_ value: UInt32, _ properties: Unicode.Scalar.Properties) -> Bool {
        switch value {
        case ..<0x1100: false
        case 0x303F, 0x3248...0x324F, 0x4DC0...0x4DFF: false
        case 0x1F1E6...0x1F1FF: false
        case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
            0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F265, 0x20000...0x3FFFD:
            true
        default: properties.isEmojiPresentation
        }
    }
}
