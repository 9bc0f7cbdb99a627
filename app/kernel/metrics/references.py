"""Citations by the short names that cards use, and the verbal scales of the literature.

Verbal scales are conventions, not statistics: each names its author.
"""

from app.kernel.metrics.card import VerbalScale

REFERENCES: dict[str, str] = {
    "agarwal2010": (
        "Agarwal, S., Dugar, D., & Sengupta, S. (2010). Ranking chemical structures for drug discovery: a new machine "
        "learning approach. Journal of Chemical Information and Modeling, 50(5), 716-731. "
        "https://doi.org/10.1021/ci9003865"
    ),
    "aguilar2022": (
        "Aguilar-Ruiz, J. S., & Michalak, M. (2022). Multiclass classification performance curve. IEEE Access, 10, "
        "68915-68921."
    ),
    "aguilar2024": (
        "Aguilar-Ruiz, J. S., & Michalak, M. (2024). Classification performance assessment for imbalanced "
        "multiclass data. "
        "Scientific Reports, 14, 10759. https://doi.org/10.1038/s41598-024-61365-z"
    ),
    "aguilar2025": (
        "Aguilar-Ruiz, J. S. (2025). Prevalence-insensitive evaluation of diagnostic systems under class "
        "imbalance: the harmonic mean "
        "of per-class sensitivity. Mathematics, 13(24), 3956. https://doi.org/10.3390/math13243956"
    ),
    "aickin1990": (
        "Aickin, M. (1990). Maximum likelihood estimation of agreement in the constant predictive probability "
        "model, and its relation "
        "to Cohen's kappa. Biometrics, 46(2), 293-302. https://doi.org/10.2307/2531434"
    ),
    "altman1990": "Altman, D. G. (1990). Practical Statistics for Medical Research. Chapman and Hall.",
    "amigo2009": (
        "Amigó, E., Gonzalo, J., Artiles, J., & Verdejo, F. (2009). A comparison of extrinsic clustering "
        "evaluation metrics based on formal constraints. Information Retrieval, 12(4), 461-486. "
        "https://doi.org/10.1007/s10791-008-9066-8"
    ),
    "austin2019": (
        "Austin, P. C., & Steyerberg, E. W. (2019). The Integrated Calibration Index (ICI) and related metrics for "
        "quantifying the calibration of logistic regression models. Statistics in Medicine, 38(21), 4051-4065. "
        "https://doi.org/10.1002/sim.8281"
    ),
    "bagga1998": (
        "Bagga, A., & Baldwin, B. (1998). Entity-based cross-document coreferencing using the vector space model. "
        "COLING-ACL 1998, 79-85. https://doi.org/10.3115/980451.980859"
    ),
    "bangdiwala1985": (
        "Bangdiwala, S. I. (1985). A graphical test for observer agreement. Proceedings of the 45th International "
        "Statistical "
        "Institute Meeting, 307-308."
    ),
    "batuwita2009": (
        "Batuwita, R., & Palade, V. (2009). A new performance measure for class imbalance learning: application to "
        "bioinformatics "
        "problems. International Conference on Machine Learning and Applications, 545-550. "
        "https://doi.org/10.1109/ICMLA.2009.126"
    ),
    "baulieu1989": (
        "Baulieu, F. B. (1989). A classification of presence/absence based dissimilarity coefficients. Journal of "
        "Classification, 6, 233-246."
    ),
    "baulieu1997": (
        "Baulieu, F. B. (1997). Two variant axiom systems for presence/absence based dissimilarity coefficients. "
        "Journal of Classification, 14, 159-170."
    ),
    "beddar2025": (
        "Beddar-Wiesing, S., Moallemey-Oureh, A., Kempkes, M., & Thomas, J. M. (2025). Absolute evaluation "
        "measures for machine "
        "learning: a survey. Preprint, 8 July 2025."
    ),
    "bennett1954": (
        "Bennett, E. M., Alpert, R., & Goldstein, A. C. (1954). Communications through limited-response questioning. "
        "Public Opinion Quarterly, 18(3), 303-308. https://doi.org/10.1086/266520"
    ),
    "brier1950": (
        "Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review, "
        "78(1), 1-3. "
        "https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2"
    ),
    "buckley2004": (
        "Buckley, C., & Voorhees, E. M. (2004). Retrieval evaluation with incomplete information. SIGIR 2004, "
        "25-32. https://doi.org/10.1145/1008992.1009000"
    ),
    "burges2005": (
        "Burges, C., Shaked, T., Renshaw, E., Lazier, A., Deeds, M., Hamilton, N., & Hullender, G. (2005). Learning to "
        "rank using gradient descent. International Conference on Machine Learning, 89-96. "
        "https://doi.org/10.1145/1102351.1102363"
    ),
    "byrt1993": (
        "Byrt, T., Bishop, J., & Carlin, J. B. (1993). Bias, prevalence and kappa. Journal of Clinical "
        "Epidemiology, 46(5), 423-429. "
        "https://doi.org/10.1016/0895-4356(93)90018-V"
    ),
    "calinski1974": (
        "Calinski, T., & Harabasz, J. (1974). A dendrite method for cluster analysis. Communications in Statistics, "
        "3(1), 1-27. https://doi.org/10.1080/03610927408827101"
    ),
    "chapelle2009": (
        "Chapelle, O., Metlzer, D., Zhang, Y., & Grinspan, P. (2009). Expected reciprocal rank for graded "
        "relevance. CIKM 2009, 621-630. https://doi.org/10.1145/1645953.1646033"
    ),
    "chicco2020": (
        "Chicco, D., & Jurman, G. (2020). The advantages of the Matthews correlation coefficient (MCC) over F1 "
        "score and accuracy in "
        "binary classification evaluation. BMC Genomics, 21, 6. https://doi.org/10.1186/s12864-019-6413-7"
    ),
    "choi2010": (
        "Choi, S.-S., Cha, S.-H., & Tappert, C. C. (2010). A survey of binary similarity and distance measures. "
        "Journal of Systemics, Cybernetics and Informatics, 8(1), 43-48."
    ),
    "cicchetti1994": (
        "Cicchetti, D. V. (1994). Guidelines, criteria, and rules of thumb for evaluating normed and standardized "
        "assessment "
        "instruments in psychology. Psychological Assessment, 6(4), 284-290. https://doi.org/10.1037/1040-3590.6.4.284"
    ),
    "cleveland1979": (
        "Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots. Journal of the "
        "American Statistical Association, 74(368), 829-836. https://doi.org/10.1080/01621459.1979.10481038"
    ),
    "cohen1960": (
        "Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and Psychological "
        "Measurement, 20(1), 37-46. "
        "https://doi.org/10.1177/001316446002000104"
    ),
    "cohen1968": (
        "Cohen, J. (1968). Weighted kappa: nominal scale agreement with provision for scaled disagreement or "
        "partial credit. "
        "Psychological Bulletin, 70(4), 213-220. https://doi.org/10.1037/h0026256"
    ),
    "consonni2012": (
        "Consonni, V., & Todeschini, R. (2012). New similarity coefficients for binary data. MATCH Communications in "
        "Mathematical and in Computer Chemistry, 68, 581-592."
    ),
    "cox1958": (
        "Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika, 45(3/4), 562-565. "
        "https://doi.org/10.1093/biomet/45.3-4.562"
    ),
    "cramer1946": "Cramér, H. (1946). Mathematical Methods of Statistics. Princeton University Press.",
    "czinder2006": (
        "Czinder, P., & Pales, Z. (2006). Some comparison inequalities for Gini and Stolarsky means. Mathematical "
        "Inequalities & Applications, 9(4), 607-616."
    ),
    "davies1979": (
        "Davies, D. L., & Bouldin, D. W. (1979). A cluster separation measure. IEEE Transactions on Pattern Analysis "
        "and Machine Intelligence, 1(2), 224-227. https://doi.org/10.1109/TPAMI.1979.4766909"
    ),
    "davis2006": (
        "Davis, J., & Goadrich, M. (2006). The relationship between precision-recall and ROC curves. International "
        "Conference on Machine "
        "Learning, 233-240. https://doi.org/10.1145/1143844.1143874"
    ),
    "delgado2019": (
        "Delgado, R., & Núñez-González, J. D. (2019). Enhancing confusion entropy (CEN) for binary and multiclass "
        "classification. "
        "PLoS ONE, 14(1), e0210264. https://doi.org/10.1371/journal.pone.0210264"
    ),
    "drummond2006": (
        "Drummond, C., & Holte, R. C. (2006). Cost curves: an improved method for visualizing classifier performance. "
        "Machine Learning, 65(1), 95-130. https://doi.org/10.1007/s10994-006-8199-5"
    ),
    "dunn1974": (
        "Dunn, J. C. (1974). Well-separated clusters and optimal fuzzy partitions. Journal of Cybernetics, 4(1), "
        "95-104. https://doi.org/10.1080/01969727408546059"
    ),
    "elkan2001": (
        "Elkan, C. (2001). The foundations of cost-sensitive learning. International Joint Conference on Artificial "
        "Intelligence, 973-978."
    ),
    "epstein1969": (
        "Epstein, E. S. (1969). A scoring system for probability forecasts of ranked categories. Journal of Applied "
        "Meteorology, 8(6), 985-987. https://doi.org/10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2"
    ),
    "everingham2010": (
        "Everingham, M., Van Gool, L., Williams, C. K. I., Winn, J., & Zisserman, A. (2010). The Pascal visual object "
        "classes (VOC) challenge. International Journal of Computer Vision, 88(2), 303-338. "
        "https://doi.org/10.1007/s11263-009-0275-4"
    ),
    "fawcett2006": (
        "Fawcett, T. (2006). An introduction to ROC analysis. Pattern Recognition Letters, 27(8), 861-874. "
        "https://doi.org/10.1016/j.patrec.2005.10.010"
    ),
    "ferri2009": (
        "Ferri, C., Hernández-Orallo, J., & Modroiu, R. (2009). An experimental comparison of performance measures "
        "for classification. "
        "Pattern Recognition Letters, 30(1), 27-38. https://doi.org/10.1016/j.patrec.2008.08.010"
    ),
    "fleiss1969": (
        "Fleiss, J. L., Cohen, J., & Everitt, B. S. (1969). Large sample standard errors of kappa and weighted kappa. "
        "Psychological Bulletin, 72(5), 323-327. https://doi.org/10.1037/h0028106"
    ),
    "fleiss2003": (
        "Fleiss, J. L., Levin, B., & Paik, M. C. (2003). Statistical Methods for Rates and Proportions (3rd ed.). "
        "Wiley. "
        "https://doi.org/10.1002/0471445428"
    ),
    "fowlkes1983": (
        "Fowlkes, E. B., & Mallows, C. L. (1983). A method for comparing two hierarchical clusterings. Journal of the "
        "American Statistical Association, 78(383), 553-569. https://doi.org/10.1080/01621459.1983.10478008"
    ),
    "gagolewski2025": (
        "Gagolewski, M. (2025). Normalised clustering accuracy: An asymmetric external cluster validity measure. "
        "Journal of Classification, 42, 2-30. https://doi.org/10.1007/s00357-024-09482-2"
    ),
    "garcia2009": (
        "García, V., Mollineda, R. A., & Sánchez, J. S. (2009). Index of balanced accuracy: a performance measure "
        "for skewed class "
        "distributions. Pattern Recognition and Image Analysis, LNCS 5524, 441-448. "
        "https://doi.org/10.1007/978-3-642-02172-5_57"
    ),
    "glas2003": (
        "Glas, A. S., Lijmer, J. G., Prins, M. H., Bonsel, G. J., & Bossuyt, P. M. M. (2003). The diagnostic odds "
        "ratio: a single "
        "indicator of test performance. Journal of Clinical Epidemiology, 56(11), 1129-1135. "
        "https://doi.org/10.1016/S0895-4356(03)00177-X"
    ),
    "gneiting2007": (
        "Gneiting, T., & Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and estimation. Journal "
        "of the American "
        "Statistical Association, 102(477), 359-378. https://doi.org/10.1198/016214506000001437"
    ),
    "good1952": (
        "Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society: Series B, 14(1), 107-114. "
        "https://doi.org/10.1111/j.2517-6161.1952.tb00104.x"
    ),
    "goodman1954": (
        "Goodman, L. A., & Kruskal, W. H. (1954). Measures of association for cross classifications. Journal of "
        "the American "
        "Statistical Association, 49(268), 732-764. https://doi.org/10.1080/01621459.1954.10501231"
    ),
    "gorodkin2004": (
        "Gorodkin, J. (2004). Comparing two K-category assignments by a K-category correlation coefficient. "
        "Computational Biology and "
        "Chemistry, 28(5-6), 367-374. https://doi.org/10.1016/j.compbiolchem.2004.09.006"
    ),
    "green1966": "Green, D. M., & Swets, J. A. (1966). Signal Detection Theory and Psychophysics. Wiley.",
    "guo2017": (
        "Guo, C., Pleiss, G., Sun, Y., & Weinberger, K. Q. (2017). On calibration of modern neural networks. "
        "International "
        "Conference on Machine Learning, PMLR 70, 1321-1330. https://proceedings.mlr.press/v70/guo17a.html"
    ),
    "gwet2008": (
        "Gwet, K. L. (2008). Computing inter-rater reliability and its variance in the presence of high agreement. "
        "British Journal of "
        "Mathematical and Statistical Psychology, 61(1), 29-48. https://doi.org/10.1348/000711006X126600"
    ),
    "haghighi2018": (
        "Haghighi, S., Jasemi, M., Hessabi, S., & Zolanvari, A. (2018). PyCM: multiclass confusion matrix library "
        "in Python. Journal of "
        "Open Source Software, 3(25), 729. https://doi.org/10.21105/joss.00729"
    ),
    "hand2001": (
        "Hand, D. J., & Till, R. J. (2001). A simple generalisation of the area under the ROC curve for multiple "
        "class classification "
        "problems. Machine Learning, 45, 171-186. https://doi.org/10.1023/A:1010920819831"
    ),
    "hand2009": (
        "Hand, D. J. (2009). Measuring classifier performance: a coherent alternative to the area under the ROC "
        "curve. Machine Learning, "
        "77, 103-123. https://doi.org/10.1007/s10994-009-5119-5"
    ),
    "hand2014": (
        "Hand, D. J., & Anagnostopoulos, C. (2014). A better Beta for the H measure of classification performance. "
        "Pattern Recognition "
        "Letters, 40, 41-46. https://doi.org/10.1016/j.patrec.2013.12.011"
    ),
    "hanley1982": (
        "Hanley, J. A., & McNeil, B. J. (1982). The meaning and use of the area under a receiver operating "
        "characteristic (ROC) curve. "
        "Radiology, 143(1), 29-36. https://doi.org/10.1148/radiology.143.1.7063747"
    ),
    "hubert1985": (
        "Hubert, L., & Arabie, P. (1985). Comparing partitions. Journal of Classification, 2, 193-218. "
        "https://doi.org/10.1007/BF01908075"
    ),
    "jaeschke1994": (
        "Jaeschke, R., Guyatt, G. H., & Sackett, D. L. (1994). Users' guides to the medical literature. III. How "
        "to use an article about "
        "a diagnostic test. B. What are the results and will they help me in caring for my patients? JAMA, 271(9), "
        "703-707. "
        "https://doi.org/10.1001/jama.1994.03510330081039"
    ),
    "jarvelin2002": (
        "Järvelin, K., & Kekäläinen, J. (2002). Cumulated gain-based evaluation of IR techniques. ACM Transactions on "
        "Information Systems, 20(4), 422-446. https://doi.org/10.1145/582415.582418"
    ),
    "kononenko1991": (
        "Kononenko, I., & Bratko, I. (1991). Information-based evaluation criterion for classifier's performance. "
        "Machine Learning, 6, "
        "67-80. https://doi.org/10.1007/BF00153760"
    ),
    "krippendorff2004": (
        "Krippendorff, K. (2004). Content Analysis: An Introduction to Its Methodology (2nd ed.). Sage."
    ),
    "kuhn1955": (
        "Kuhn, H. W. (1955). The Hungarian method for the assignment problem. Naval Research Logistics Quarterly, "
        "2(1-2), 83-97. https://doi.org/10.1002/nav.3800020109"
    ),
    "kuhns1964": (
        "Kuhns, J. L. (1964). The continuum of coefficients of association. In Statistical Association Methods for "
        "Mechanized Documentation, 33-39. National Bureau of Standards."
    ),
    "kull2019": (
        "Kull, M., Perello Nieto, M., Kängsepp, M., Silva Filho, T., Song, H., & Flach, P. (2019). Beyond temperature "
        "scaling: obtaining well-calibrated multi-class probabilities with Dirichlet calibration. Advances in Neural "
        "Information Processing Systems 32. https://arxiv.org/abs/1910.12656"
    ),
    "kumar2019": (
        "Kumar, A., Liang, P., & Ma, T. (2019). Verified uncertainty calibration. NeurIPS 32, 3787-3798. "
        "https://arxiv.org/abs/1909.10155"
    ),
    "labatut2012": (
        "Labatut, V., & Cherifi, H. (2012). Accuracy measures for the comparison of classifiers. arXiv:1207.3790. "
        "https://arxiv.org/abs/1207.3790"
    ),
    "landis1977": (
        "Landis, J. R., & Koch, G. G. (1977). The measurement of observer agreement for categorical data. "
        "Biometrics, 33(1), 159-174. "
        "https://doi.org/10.2307/2529310"
    ),
    "macavaney2022": (
        "MacAvaney, S., Macdonald, C., & Ounis, I. (2022). Streamlining evaluation with ir-measures. ECIR 2022, "
        "LNCS 13186, 305-310. https://doi.org/10.1007/978-3-030-99739-7_38"
    ),
    "manning2008": (
        "Manning, C. D., Raghavan, P., & Schütze, H. (2008). Introduction to Information Retrieval, chapter 8. "
        "Cambridge University Press."
    ),
    "maratea2014": (
        "Maratea, A., Petrosino, A., & Manzo, M. (2014). Adjusted F-measure and kernel scaling for imbalanced data "
        "learning. "
        "Information Sciences, 257, 331-341. https://doi.org/10.1016/j.ins.2013.04.016"
    ),
    "martin1997": (
        "Martin, A., Doddington, G., Kamm, T., Ordowski, M., & Przybocki, M. (1997). The DET curve in assessment "
        "of detection task "
        "performance. Eurospeech, 1895-1898."
    ),
    "martin2022": (
        "Martín De Diego, I., Redondo, A. R., Fernández, R. R., Navarro, J., & Moguerza, J. M. (2022). General "
        "Performance Score for "
        "classification problems. Applied Intelligence, 52, 12049-12063. "
        "https://doi.org/10.1007/s10489-021-03041-7"
    ),
    "matthews1975": (
        "Matthews, B. W. (1975). Comparison of the predicted and observed secondary structure of T4 phage "
        "lysozyme. Biochimica et "
        "Biophysica Acta, 405(2), 442-451. https://doi.org/10.1016/0005-2795(75)90109-9"
    ),
    "mcclish1989": (
        "McClish, D. K. (1989). Analyzing a portion of the ROC curve. Medical Decision Making, 9(3), 190-195. "
        "https://doi.org/10.1177/0272989X8900900307"
    ),
    "mcfadden1974": (
        "McFadden, D. (1974). Conditional logit analysis of qualitative choice behavior. In P. Zarembka (Ed.), "
        "Frontiers in Econometrics, 105-142. Academic Press."
    ),
    "mcsherry2008": (
        "McSherry, F., & Najork, M. (2008). Computing information retrieval performance measures efficiently in the "
        "presence of tied scores. European Conference on Information Retrieval, 414-421. "
        "https://doi.org/10.1007/978-3-540-78646-7_38"
    ),
    "meila2007": (
        "Meilă, M. (2007). Comparing clusterings - an information based distance. Journal of Multivariate "
        "Analysis, 98(5), 873-895. https://doi.org/10.1016/j.jmva.2006.11.013"
    ),
    "moffat2008": (
        "Moffat, A., & Zobel, J. (2008). Rank-biased precision for measurement of retrieval effectiveness. ACM "
        "Transactions on Information Systems, 27(1), 1-27. https://doi.org/10.1145/1416950.1416952"
    ),
    "mosley2013": (
        "Mosley, L. (2013). A balanced approach to the multi-class imbalance problem. PhD thesis, Iowa State "
        "University."
    ),
    "murphy1973": (
        "Murphy, A. H. (1973). A new vector partition of the probability score. Journal of Applied Meteorology, "
        "12(4), 595-600. "
        "https://doi.org/10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2"
    ),
    "mysinger2010": (
        "Mysinger, M. M., & Shoichet, B. K. (2010). Rapid context-dependent ligand desolvation in molecular docking. "
        "Journal of Chemical Information and Modeling, 50(9), 1561-1573. https://doi.org/10.1021/ci100214a"
    ),
    "naeini2015": (
        "Naeini, M. P., Cooper, G. F., & Hauskrecht, M. (2015). Obtaining well calibrated probabilities using "
        "Bayesian binning. AAAI "
        "Conference on Artificial Intelligence, 29(1). https://doi.org/10.1609/aaai.v29i1.9602"
    ),
    "nixon2019": (
        "Nixon, J., Dusenberry, M., Zhang, L., Jerfel, G., & Tran, D. (2019). Measuring calibration in deep "
        "learning. CVPR "
        "Workshops. https://arxiv.org/abs/1904.01685"
    ),
    "opitz2019": "Opitz, J., & Burst, S. (2019). Macro F1 and macro F1. arXiv:1911.03347. https://arxiv.org/abs/1911.03347",
    "pearson1900": (
        "Pearson, K. (1900). On the criterion that a given system of deviations from the probable in the case of a "
        "correlated system of "
        "variables is such that it can be reasonably supposed to have arisen from random sampling. Philosophical "
        "Magazine, 50(302), "
        "157-175. https://doi.org/10.1080/14786440009463897"
    ),
    "pedregosa2011": (
        "Pedregosa, F., et al. (2011). Scikit-learn: machine learning in Python. Journal of Machine Learning "
        "Research, 12, 2825-2830. "
        "https://www.jmlr.org/papers/v12/pedregosa11a.html"
    ),
    "pepe2003": (
        "Pepe, M. S. (2003). The Statistical Evaluation of Medical Tests for Classification and Prediction. Oxford "
        "University Press."
    ),
    "provost2000": (
        "Provost, F., & Domingos, P. (2000). Well-trained PETs: improving probability estimation trees. CeDER "
        "Working Paper IS-00-04, "
        "Stern School of Business, New York University."
    ),
    "rajpurkar2016": (
        "Rajpurkar, P., Zhang, J., Lopyrev, K., & Liang, P. (2016). SQuAD: 100,000+ questions for machine "
        "comprehension of text. Proceedings of EMNLP, 2383-2392. https://doi.org/10.18653/v1/D16-1264"
    ),
    "ranawana2006": (
        "Ranawana, R., & Palade, V. (2006). Optimized precision: a new measure for classifier performance "
        "evaluation. IEEE Congress on "
        "Evolutionary Computation, 2254-2261. https://doi.org/10.1109/CEC.2006.1688586"
    ),
    "rand1971": (
        "Rand, W. M. (1971). Objective criteria for the evaluation of clustering methods. Journal of the American "
        "Statistical Association, 66(336), 846-850. https://doi.org/10.1080/01621459.1971.10482356"
    ),
    "rea1992": "Rea, L. M., & Parker, R. A. (1992). Designing and Conducting Survey Research. Jossey-Bass.",
    "rezaei2016": (
        "Rezaei, M., & Fränti, P. (2016). Set matching measures for external cluster validity. IEEE Transactions "
        "on Knowledge and Data Engineering, 28(8), 2173-2186. https://doi.org/10.1109/TKDE.2016.2551240"
    ),
    "robin2011": (
        "Robin, X., Turck, N., Hainard, A., et al. (2011). pROC: an open-source package for R and S+ to analyze and "
        "compare ROC curves. BMC Bioinformatics, 12, 77. https://doi.org/10.1186/1471-2105-12-77"
    ),
    "rosenberg2007": (
        "Rosenberg, A., & Hirschberg, J. (2007). V-measure: a conditional entropy-based external cluster evaluation "
        "measure. Proceedings of EMNLP-CoNLL 2007, 410-420."
    ),
    "rousseeuw1987": (
        "Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and validation of cluster "
        "analysis. Journal of Computational and Applied Mathematics, 20, 53-65. "
        "https://doi.org/10.1016/0377-0427(87)90125-7"
    ),
    "scott1955": (
        "Scott, W. A. (1955). Reliability of content analysis: the case of nominal scale coding. Public Opinion "
        "Quarterly, 19(3), "
        "321-325. https://doi.org/10.1086/266577"
    ),
    "sindhwani2001": (
        "Sindhwani, V., Bhattacharya, P., & Rakshit, S. (2001). Information theoretic feature crediting in "
        "multiclass support vector "
        "machines. SIAM International Conference on Data Mining."
    ),
    "sokolova2006": (
        "Sokolova, M., Japkowicz, N., & Szpakowicz, S. (2006). Beyond accuracy, F-score and ROC: a family of "
        "discriminant measures for "
        "performance evaluation. AI 2006, LNCS 4304, 1015-1021. https://doi.org/10.1007/11941439_114"
    ),
    "stolarsky1975": (
        "Stolarsky, K. B. (1975). Generalizations of the logarithmic mean. Mathematics Magazine, 48(2), 87-92. "
        "https://doi.org/10.1080/0025570X.1975.11976447"
    ),
    "strehl2002": (
        "Strehl, A., & Ghosh, J. (2002). Cluster ensembles: a knowledge reuse framework for combining multiple "
        "partitions. Journal of Machine Learning Research, 3, 583-617."
    ),
    "tsoumakas2010": (
        "Tsoumakas, G., Katakis, I., & Vlahavas, I. (2010). Mining multi-label data. Data Mining and Knowledge "
        "Discovery Handbook, 667-685. https://doi.org/10.1007/978-0-387-09823-4_34"
    ),
    "tversky1977": (
        "Tversky, A. (1977). Features of similarity. Psychological Review, 84(4), 327-352. "
        "https://doi.org/10.1037/0033-295X.84.4.327"
    ),
    "vancalster2019": (
        "Van Calster, B., McLernon, D. J., van Smeden, M., Wynants, L., & Steyerberg, E. W. (2019). Calibration: the "
        "Achilles heel of predictive analytics. BMC Medicine, 17, 230. https://doi.org/10.1186/s12916-019-1466-7"
    ),
    "vickers2006": (
        "Vickers, A. J., & Elkin, E. B. (2006). Decision curve analysis: a novel method for evaluating prediction "
        "models. Medical "
        "Decision Making, 26(6), 565-574. https://doi.org/10.1177/0272989X06295361"
    ),
    "vinh2010": (
        "Vinh, N. X., Epps, J., & Bailey, J. (2010). Information theoretic measures for clusterings comparison: "
        "variants, properties, normalization and correction for chance. Journal of Machine Learning Research, 11, "
        "2837-2854."
    ),
    "voorhees1999": (
        "Voorhees, E. M. (1999). The TREC-8 question answering track report. Text REtrieval Conference, 77-82."
    ),
    "warrens2008": (
        "Warrens, M. J. (2008). Similarity coefficients for binary data. Doctoral thesis, Leiden University."
    ),
    "wei2010": (
        "Wei, J.-M., Yuan, X.-J., Hu, Q.-H., & Wang, S.-Q. (2010). A novel measure for evaluating classifiers. "
        "Expert Systems with "
        "Applications, 37(5), 3799-3809. https://doi.org/10.1016/j.eswa.2009.11.040"
    ),
    "wu2025": (
        "Wu, Y., & Cannistraci, C. V. (2025). Accuracy score for evaluation of classification on imbalanced data. "
        "Preprints, "
        "202501.2178. https://doi.org/10.20944/preprints202501.2178.v1"
    ),
    "youden1950": (
        "Youden, W. J. (1950). Index for rating diagnostic tests. Cancer, 3(1), 32-35. "
        "https://doi.org/10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3"
    ),
    "yule1912": (
        "Yule, G. U. (1912). On the methods of measuring association between two attributes. Journal of the Royal "
        "Statistical Society, "
        "75(6), 579-652. https://doi.org/10.2307/2340126"
    ),
    "zhao2004": (
        "Zhao, Y., & Karypis, G. (2004). Empirical and theoretical comparisons of selected criterion functions for "
        "document clustering. Machine Learning, 55(3), 311-331. https://doi.org/10.1023/B:MACH.0000027785.44527.d6"
    ),
}


LANDIS_KOCH = VerbalScale(
    "landis_koch",
    ((0.0, "poor"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"), (None, "almost perfect")),
    "landis1977",
)
FLEISS = VerbalScale("fleiss", ((0.4, "poor"), (0.75, "intermediate to good"), (None, "excellent")), "fleiss2003")
ALTMAN = VerbalScale(
    "altman", ((0.2, "poor"), (0.4, "fair"), (0.6, "moderate"), (0.8, "good"), (None, "very good")), "altman1990"
)
CICCHETTI = VerbalScale(
    "cicchetti", ((0.4, "poor"), (0.59, "fair"), (0.74, "good"), (None, "excellent")), "cicchetti1994"
)
KAPPA_SCALES = (LANDIS_KOCH, FLEISS, ALTMAN, CICCHETTI)
CRAMER = VerbalScale(
    "cramer",
    (
        (0.1, "negligible"),
        (0.2, "weak"),
        (0.4, "moderate"),
        (0.6, "relatively strong"),
        (0.8, "strong"),
        (None, "very strong"),
    ),
    "rea1992",
)
MATTHEWS = VerbalScale(
    "matthews",
    ((0.3, "negligible"), (0.5, "weak"), (0.7, "moderate"), (0.9, "strong"), (None, "very strong")),
    "chicco2020",
)
LAMBDA = VerbalScale(
    "lambda",
    ((0.2, "very weak"), (0.4, "weak"), (0.6, "moderate"), (0.8, "strong"), (1.0, "very strong"), (None, "perfect")),
    "rea1992",
)
KRIPPENDORFF = VerbalScale("krippendorff", ((0.667, "low"), (0.8, "tentative"), (None, "high")), "krippendorff2004")
PEARSON_C = VerbalScale(
    "pearson_c", ((0.1, "not appreciable"), (0.2, "weak"), (0.3, "medium"), (None, "strong")), "rea1992"
)
POSITIVE_LIKELIHOOD_RATIO = VerbalScale(
    "likelihood_ratio_positive", ((1.0, "negligible"), (5.0, "poor"), (10.0, "fair"), (None, "good")), "jaeschke1994"
)
NEGATIVE_LIKELIHOOD_RATIO = VerbalScale(
    "likelihood_ratio_negative", ((0.1, "good"), (0.2, "fair"), (0.5, "poor"), (None, "negligible")), "jaeschke1994"
)
SINGLE_POINT_AUC = VerbalScale(
    "single_point_auc",
    ((0.6, "poor"), (0.7, "fair"), (0.8, "good"), (0.9, "very good"), (None, "excellent")),
    "haghighi2018",
)
YULE = VerbalScale(
    "yule_q", ((0.25, "negligible"), (0.5, "weak"), (0.75, "moderate"), (None, "strong")), "haghighi2018"
)
DISCRIMINANT_POWER = VerbalScale(
    "discriminant_power",
    ((1.0, "poor"), (2.0, "limited"), (3.0, "fair"), (None, "good")),
    "sokolova2006",
)
