/// The 2,048 words of one-time codes: English words of at most seven letters. The first four letters tell them apart,
/// and no two differ by one typing error.
enum CodeWords {
    static let all: [Substring] = text.split { $0 == " " || $0 == "\n" }

    /// The number of bits that a word stands for.
    static let bits = 11

    /// Returns the index of a word by its first four letters or more; nil if it is none.
    static func index(of text: some StringProtocol) -> Int? {
        let word = text.lowercased()
        if let index = all.firstIndex(of: Substring(word)) { return index }
        return word.count < 4 ? nil : all.firstIndex { $0.hasPrefix(word) }
    }

    private static let text = """
        abdomen able aboard above abrupt absence absorb access acclaim account achieve acid acquire across acrylic
        action actress actual address adhere adjust admit adopt adore adult advance adverse advice aerial afar affair
        affirm afford afloat afraid after against agent agile agree airline airport alarm album alert algae algebra
        alias alien alive allege allow allure almost alone alpha always amateur amaze amber ambient amend amongst amount
        amuse analyst anchor ancient android anemia angelic angle angular animal annals annex annual answer antenna
        anthem antique anxious anyhow apex apiece apostle apparel appear apple appoint approve apron aquatic arcade
        archive ardent arduous area argue armor aroma arose around arrange arrest arrival arsenal article artwork ascent
        ashamed ashore aside aspect asphalt aspire asset assist assume athlete atlas atomic attach attempt attic attract
        auburn audio augment august aunt aura author auto autumn avail avenue average avocado avoid await awake award
        awesome awful awhile awkward azure babe back bacon badge bagel baggage bait balance ballot bamboo banana banjo
        banquet banter bargain barn baroque barrel basic basket bathtub battle bayonet bazaar beam beast beaver become
        bedroom bedtime beef beetle before began behalf behind behold beige believe below benefit benign beside beta
        between beware beyond bicycle bigot bike bill bingo birch bird biscuit bison bizarre blame blank blind bliss
        block blog blonde bloom blossom blouse blowout bluff blunt blur boat bolster bond bonfire bonnet bonus booklet
        boost booth bore borough borrow boss bottom bounce bouquet bowl boycott bracket brag braid branch brass brave
        breath breed brick bridge brief bright bring brittle broad bronze brook brown bruise brush bubble bucket budget
        buffalo built bulge bulk bulldog bunch bundle bureau burger burial burr burst butler button buzz bypass byte
        cabaret cabbage cabinet cache cactus calcium caliber call calorie camera canal cancel candle canine canon
        canteen canvas capable capital capsule captain caravan carbon care cargo carol carpet carrier cartoon cascade
        cash casino castle casual catalog catfish caught cause caution caveat caviar cedar ceiling cellar cement census
        central ceramic certain chair chalk chamber change chapel charm chat cheap check cheese chemist cherish chest
        chic chief child chime china choice chop chorus chuckle chunk cider cinema cipher circle citizen citrus civil
        claim class claw clear clerk clever click client cliff climate clinic clip clique cloak close cloth cloud clown
        club cluster clutch coach coast cobalt cockpit coconut code coffee college color colt column comet comfort comic
        common complex comrade concept conduct confirm connect conquer consent control convert cool cordon corn corpus
        correct cortex cosmos costume cotton cougar couple court cousin coward coyote cradle craft cram crane crawl
        create credit crept crew crib cricket crimson crisp critic crochet crowd crucial crude crumble crunch crust
        cryptic crystal cubic cuckoo cuddle cuisine culprit culture curator curfew curve cushion custom cute cycle
        cypress cyst damage dance dark darling data dawn daytime deal debate debris decide deed default define defunct
        degree delete deliver delta deluxe delve demand dentist depart depend depict deposit depth descent design desk
        despite detail detect develop device devote diagram dialect diamond dictate diesel diet differ digital dilemma
        dilute dioxide diploma direct discuss dismiss disrupt ditto diverse divine doctor dogma dollar dolphin domain
        domino donate donut door dormant dorsal dose double dragon drama drastic draw dream dress drift drill drink
        drive drizzle drone drop drum dubious duchess duplex durable during dust dynamic eager eagle earth ease eastern
        echo eclipse edge edible edition educate eerie effect effort eighth either elbow elder elegant element eleven
        elite elusive email embark emblem embrace emerge eminent emit emperor empire empower emulate enamel encore
        endemic endless endorse enforce engage engine enhance enigma enlarge enlist enough enrich enroll ensign ensure
        entail enter entire envious enzyme epic episode epitome epoch equal equip erosion erratic escape escort essence
        esteem eternal ethical ethos evade evasion event evident evoke evolve exact example except excite exclude excuse
        execute exert exhaust exhibit exist exodus exotic expand expect explain export express extent extinct extra
        eyebrow fabric facade face facial factor failure faint faith falcon false famous fanatic fanfare fashion fathom
        fatigue fauna favor fearful feature federal feel feline felt female fern fertile festive fetch feud fiction
        field fiesta fifth figure film filter final finesse finger finish fire first fiscal fission flair flannel flare
        flash flat fleet flex floor floral floss flow fluent fluid flute focus fodder foliage folk follow foot forage
        force foreign forfeit forget form fortune forward fossil foster fought found fragile frame frank free freight
        french fresh friend fringe frog front frugal fruit fulfill full furnace further fusion future gadget gain gala
        gallon galore gamble game gamma garage garden garlic garment garnet gauge gazette geese gender general genius
        genre gentle genuine gesture giant gift giggle giraffe girl give glacier glad glamour glance glaze glen glimpse
        glitter global glucose glue gnome goal goddess golf good gorge gossip gourmet govern grab grace gradual grammar
        grand graphic grasp greet grid group grove growth grudge grunt guard guess guide guild guinea guitar guru habit
        haircut half hamlet hammock hamper hamster hand hangar harbor harem harmful harp harsh harvest hassle havoc hawk
        hazard hazel head health heart hectic height heir helium helmet help hence herald hero hiatus hideous high
        hijack hinge hint hoard hoax hoist hold homage home honor hoop hopeful horde horizon hormone hornet horrid hotel
        house however huge human humble humid humor hundred hurdle hurt husband hustle hybrid hygiene iceberg idea
        idiotic ignite ignore illegal image imitate immense impact impetus implant import improve impulse inch include
        income incur indeed indices indoor induce inept inertia infant inferno influx info inhale inherit inhibit
        initial inject injure inlet input inquire insert inside inspire instant insult intake intense invalid invest
        invite involve iodine iris iron island isle isolate issue item jacket jade jagged jaguar janitor jargon jazz
        jewel jigsaw jinx join joke journal joyful joyous jubilee judge juice jumbo jump jungle junior junta juror
        justice karate kayak keep kept kernel ketchup keynote keyword kickoff kilo kind kingdom kinship kitchen kite
        kiwi knee knives knob knock known knuckle kudos label labor lagoon lamp lantern lapse large laser last late
        latter laugh launch laurel lava lavish lawless lawyer layout leaf league leakage learn leash leather leave
        lecture leech left legal legend leisure lemon length lenient leopard less lettuce level liaison liberal license
        lieu life light lilac limbo limit linear link lion liquid lithium little lizard load loathe lobster local lodge
        logic logo long look loose lounge lovable love lucid luck luggage lumber lunar lymph lyric machine magical
        magnet mailbox maize major make mammoth manage mandate manhood mania mankind mansion mantle manual maple marble
        march marine market maroon marquee marshal martin marvel mascot mask mason massive matrix matt mature maximum
        meadow mean measure media melon member memo mental menu mere merit mermaid mesh message meteor method metro
        middle midst midwife mileage milk million mimic mindful mine minimum minute miracle mirror misled miss mistake
        mixture mobile model module mole moment monarch monitor monster month mortar mosaic motion motor motto movie
        mucus muffin multi mundane museum music mustard mutual myriad mystic myth naive napkin narrow nasal nation
        natural nebula neck nectar needle neglect neon nephew nervous network neuron neutral never newborn newton next
        nice nickel ninth nitrate noble noise nomadic nominee nonstop noodle normal north notable notch notice noun nova
        novel nowhere nozzle nugget numb nurse nurture nylon oasis oatmeal object oblique observe obtain obvious occur
        ocean octopus offense office offset often omega omnibus once oneself ongoing onset onward opaque open operate
        opinion option opus oracle orbit orchard order organic orient origin ornate otter outcome outdoor outfit outlook
        output outrage outside outward oval ovation overall oxide oxygen oyster pacific package paddock page paid
        painful pajamas palate palette palm pancake panda panel panther parade parcel pardon parent parlor parrot part
        pass path patient patrol pattern payable payload payment payoff payroll peacock peanut pearl pebble peer penance
        pencil pendant penguin people percent perfect peril perk permit person petite phantom phase phoenix phone photo
        piano pick picnic picture pierce pigeon pigment pillow pioneer pipe pirate piston pitch pitiful pivot pixie
        pizza place plan plaque plastic plateau playful plaza plea pledge plot plume plunge plural plus plywood pocket
        poem poetic point polish polka popcorn popular porch porous portion possess post potato potent power prairie
        precise predict prefer prelude premier prepare present pretend prevail price primal prior prism private problem
        process product profile program project prolong promise pronoun proof propose prosper protein proud provide
        prudent pseudo psychic public pudding pueblo puff pulp pulse puma pumpkin pupil puppet purge purpose pursue push
        putt puzzle pyramid python quaint quake quantum quartet queen quest queue quick quill quite quiz quota rabbit
        raccoon radar radio rail rainbow raise rampant random range rapid rapport rather ravine razor reach realize reap
        rebirth rebound rebuild recall recent recipe reckon reclaim record recruit rector recycle redo redress reduce
        referee refill reflect reform refresh regard region regret regular reject rejoice relax release relief reload
        remain remind remnant remove rename renewal renown rent reopen repair repeat replace report reprint reptile
        require resale rescue reserve resist resolve respect restore result rethink retire retreat return reunion revamp
        revenue review rewrite rhino rhyme rhythm ribbon rich rigid rinse ripple risk ritual rival river roar robin
        robot robust rock rodeo rogue roman rookie room rope rotate rough routine royal rubbish ruin rule rundown rural
        rustic saber saddle safari saffron saga sailor salad saliva salmon salt salute salvage sarcasm satire sauce
        sausage save savior scale scandal scarf scatter scenic scheme school science scoop scope scotch scout scratch
        screen script scroll scrub seafood seaman search season seat seaweed second secret section secure sedan seek
        segment seldom select self selves seminar senator send senior sense sequel sera serene series sermon serpent
        serum service session setback settle several sewage sewn shadow shallow shampoo share shawl sheath sheet shell
        sheriff shield shift shine ship short shove show shred shrimp shroud shrug shudder shuffle shut sibling sickle
        siege sierra sign silence silicon silver similar simmer simple sincere single sister sixth sizable size sketch
        skin skirt skull skyline slant sleep slender slide slogan slump small smash smile smith smooth snack snail snake
        snap snatch sneeze sniff snippet soak soccer social soda sodium soft soil solar soldier solemn solid solo
        soluble solve somehow sonata sonic soon soothe soprano soup source south space span spark spatial speak special
        speed sphere spider splash spleen split spoke sponsor spot spouse spread sprint sprout sprung spur square
        squeeze squid stable stadium stag stain stamp stand start state steam steer stellar stench stern stew still
        stimuli stir stock stomach stop store strange street strike strong student stuff stumble style subject sublime
        subtle suburb success sudden suede sugar suggest suit sulfur sulphur sultan summit sunrise sunset superb support
        supreme sure surface surname surplus surreal survive suspect sustain swagger swear swim swing swipe swirl switch
        swollen sword symbol symptom synonym syntax syrup system tablet tackle taco tactic takeoff talent talk tandem
        tango tantrum target tariff taste tavern taxable taxi teenage teeth temper tenant tendon tennis tenor tension
        tenure term terrain test texture thaw theatre theft theme theorem thermal thesis theta think third thorn those
        thought thrash three thrive throw thrust thumb thunder thyroid ticket tidal tiger tilt timber time timid tinder
        title tobacco token toll tomato tongue tonight tonne topic tornado torpedo torque torrent total touch tour towel
        town track trade traffic train transit travel treat treble trek trend trial tribute trickle trigger trip triumph
        trivial troop trot trouble true trumpet trunk trustee truth tsar tube tubular tuition tulip tuna tunnel turbine
        turmoil turn turret turtle tutor tuxedo tweet twelve twice twin twist tycoon type typhoon typical ultra unable
        unaware uncle uncover uncut under undone undue unequal uneven unfair unfold unheard unicorn uniform union unique
        unit unknown unless unlike unlock unnamed unpaid unravel unrest unseen unto unusual unveil unwell upbeat update
        upgrade upheld uphill upkeep uplift upload upright uproar upside uptake uptown upward urban urgent usage useful
        usher usual utilize utmost vacant vaccine vacuum valet valid value vanilla vapor various vehicle velvet vendor
        veneer venture verbal verdict verge version vertigo vessel veto viable vibrant victor video view vigil vile
        village vinegar vintage vinyl viper virtual visa visit visual vital vivid voice volcano voltage volume voodoo
        vote voyage waffle wagon wallet walnut waltz want warm warrant wasp watch water weasel weekend welcome welfare
        well western wheat whiff whistle wide width wild window winter wisdom wish wolves women wonder woof work wrestle
        wrinkle yacht yard year yellow yoga yogurt young zebra zenith zinc zodiac zone
        """
}
