/// This side wants to leave as soon as all it sent is acknowledged.
struct Departure {
    var deadline: Moment
    var tokens: [CallToken]
}
